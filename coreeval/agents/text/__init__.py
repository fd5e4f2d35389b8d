"""Analyses texts by code: words, numbers, names, voice, and their support by evidence."""
