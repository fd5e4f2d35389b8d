"""Estimates of a run before it starts: ranges of calls, tokens, money and time."""
