"""A run on disk: manifest, status, arms, card, quality, the history of a sample."""
