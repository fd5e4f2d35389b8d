"""The local web pages: what happened to each sample, and why."""
