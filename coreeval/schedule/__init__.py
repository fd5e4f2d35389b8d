"""Renews benchmarks on a schedule: due work is done once, no matter how often it is checked."""
