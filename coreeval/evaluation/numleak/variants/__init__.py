"""Further ways of asking, as rows and pictures."""
