"""Whether the updated arm is as long, as hard and about the same as the original."""
