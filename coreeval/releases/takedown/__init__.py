"""Finds and deletes the data in a workspace about a person who asked for removal."""
