"""Texts that want to be obeyed, and models that obey."""
