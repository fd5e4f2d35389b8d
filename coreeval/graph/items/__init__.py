"""Asking targets about a benchmark of items: two splits of it, as they are and modified."""
