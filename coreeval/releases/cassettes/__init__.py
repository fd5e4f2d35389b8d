"""Cassettes: a run as one file, its lines, how it is written, read safely, and compared."""
