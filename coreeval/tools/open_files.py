"""How many files and connections this process may have open."""

ENOUGH = 4096
"""Enough open files for three endpoints with the most requests in flight that a config may ask for,
and for a run's files."""
KEPT = 100
"""The number of files reserved if the limit is low: for databases, news, pictures and Python's own
files."""


def connections_allowed() -> int:
    """Return the number of connections that may be open at once; 0 means no limit.

    A shell's usual limit of 256 or 1024 is raised as far as the system permits.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    if soft == unlimited or soft >= ENOUGH:
        return 0
    allowed = ENOUGH if hard == unlimited else min(ENOUGH, hard)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    except (OSError, ValueError):
        allowed = soft
    return 0 if allowed >= ENOUGH else max(1, allowed - KEPT)
