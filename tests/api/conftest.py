"""The shell and the finished run of the command line's tests: functions are compared with both."""

from tests.cli.conftest import finished, shell

__all__ = ["finished", "shell"]
