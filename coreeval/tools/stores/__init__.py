"""What a run keeps: model calls, samples and results. In SQLite or PostgreSQL."""
