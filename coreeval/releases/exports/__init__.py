"""Exports of a run or a release for other tools; one module per format."""
