"""The local web pages: what a run did, read from its files; nothing is changed by looking."""
