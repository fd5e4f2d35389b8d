"""Limits pages to public IP addresses, checked when the socket is created.

A name may resolve to an address of this network, even only at the second lookup, so the address to
which the socket connects is checked.
"""

import socket
from collections.abc import Callable
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from aiohttp.abc import AbstractResolver
from yarl import URL

CheckAddress = Callable[[str], bool]
"""Returns whether a socket may connect to an IP address."""
_NAT64: Final = 0x64FF9B << 96
_NAT64_MASK: Final = ((1 << 96) - 1) << 32


class NotPublic(OSError):
    """The address is not public."""

    def __init__(self) -> None:
        super().__init__("the host has an address that is not public")


def is_public_address(address: str) -> bool:
    """Return whether an IP address is public, and so are any addresses inside it."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    return all(_is_public(each) for each in _contained(found) or (found,))


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    return address.is_global and not address.is_multicast and not address.is_reserved


def _contained(address: IPv4Address | IPv6Address) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses that an IPv6 address contains and leads to."""
    if isinstance(address, IPv4Address):
        return ()
    inside = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if int(address) & _NAT64_MASK == _NAT64:
        inside.append(IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(each for each in inside if each is not None)


def is_web_address(url: str) -> bool:
    """Return whether a URL is http or https, has a host and has no password."""
    try:
        found = URL(url)
        url.encode()
        urlsplit(url)
        has_host = bool(found.host)  # decodes a name in another script
    except (ValueError, TypeError, IndexError):  # also UnicodeError; yarl looks after the last @
        return False
    return found.scheme in ("http", "https") and has_host and "@" not in found.raw_authority


def join_address(base: str, reference: str) -> str:
    """Return an address from a page; "" if it is invalid, which `is_web_address` refuses."""
    try:
        return urljoin(base, reference)
    except ValueError:
        return ""


def new_connector(
    check: CheckAddress = is_public_address, resolver: AbstractResolver | None = None
) -> aiohttp.TCPConnector:
    """Return a connector that creates sockets only to allowed addresses.

    Args:
        check: Returns whether an address is allowed.
        resolver: Finds the addresses of a host; the system's resolver by default.
    """

    def make_socket(info: aiohttp.AddrInfoType) -> socket.socket:
        family, kind, protocol, _, address = info
        if not check(str(address[0])):
            raise NotPublic
        return socket.socket(family, kind, protocol)

    return aiohttp.TCPConnector(
        limit_per_host=1, resolver=resolver, socket_factory=make_socket, ttl_dns_cache=60
    )
