"""What a run delivers: the arms as parquet, their provenance, the dataset card, the manifest."""
