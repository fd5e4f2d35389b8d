"""Speed, memory and bytes, measured; not timed tests."""
