"""Stores of a run's model calls, samples and results, in SQLite or PostgreSQL."""
