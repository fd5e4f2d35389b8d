"""Local web pages that show what a run did; they only read its files."""
