"""The command line: each command parses, calls one function and prints; one file per command."""

from coreeval.cli.app import main

__all__ = ["main"]
