"""Releases of runs: the arms as Parquet, their provenance, the dataset card, the manifest."""
