"""Refuses every connection that leaves this machine, in the tests and in what they start.

Python imports a module of this name at its start, so a process whose PYTHONPATH has this folder
is guarded from its first line; `tests/conftest.py` imports it for the test process itself.
"""

import sys

_ADDRESS_AT = {"socket.connect": 1, "socket.sendto": 1, "socket.sendmsg": 1}
_HOST_AT = {"socket.getaddrinfo": 0, "socket.gethostbyname": 0, "socket.gethostbyaddr": 0}


class NetworkRefused(RuntimeError):
    """A test tried to reach something beyond this machine."""


def _is_local(host: object) -> bool:
    """Tell whether a host is this machine; None and "" stand for it."""
    name = host.decode() if isinstance(host, bytes) else host
    if name in {None, "", "localhost", "::1"}:
        return True
    parts = str(name).split(".")
    return parts[0] == "127" and len(parts) == 4 and all(part.isdigit() for part in parts)


def refuse_far_hosts(event: str, arguments: tuple[object, ...]) -> None:
    """Audit hook: raise before a socket of the internet family goes further than loopback."""
    if event in _HOST_AT:
        host = arguments[_HOST_AT[event]]
    elif event in _ADDRESS_AT:
        address = arguments[_ADDRESS_AT[event]]
        if not isinstance(address, tuple) or not isinstance(address[0], str | bytes):
            return  # a path (unix), numbers (netlink), or a socket that is connected already
        host = address[0]
    else:
        return
    if not _is_local(host):
        raise NetworkRefused(f"{event}: {host!r} is not this machine; tests stay on loopback")


sys.addaudithook(refuse_far_hosts)
