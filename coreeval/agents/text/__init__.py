"""Reads texts by code: words, numbers, names, voice, and what supports them."""
