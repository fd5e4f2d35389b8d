"""Benchmarks in, scores out: loaders, targets on the arms, scoring, the report."""
