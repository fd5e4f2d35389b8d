"""What is published: metadata, workflows, the image."""
