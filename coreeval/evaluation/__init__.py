"""Evaluation: loads benchmarks, asks targets about the arms, scores answers, writes the report."""
