"""Plugins for CoreEval: a detector, a dataset format and a source of news."""
