"""Candidates for a value, ranked by a model's own log-probabilities (research: numleak, app. T)."""
