"""A run on disk: manifest, status, arms, card, quality, and histories of samples."""
