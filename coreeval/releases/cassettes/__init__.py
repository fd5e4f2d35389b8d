"""Cassettes: a run as one file; its format, and writing, reading and comparing it safely."""
