"""Overlap: items that two benchmarks share, or that one has twice, verbatim or nearly so."""
