"""The command line: each command parses, calls one function and prints. One file per command."""

from coreeval.cli.app import main

__all__ = ["main"]
