"""Renewing benchmarks on a schedule: what is due is done once, whoever looks and how often."""
