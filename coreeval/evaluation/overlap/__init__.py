"""Overlap: items that two benchmarks share, or that one has twice, word for word or nearly so."""
