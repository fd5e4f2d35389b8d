"""Stores, news sources, files and other services that the program uses beside models."""
