"""What a run keeps: model calls, samples and results. SQLite now, a URL later."""
