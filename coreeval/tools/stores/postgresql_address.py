"""The address of the PostgreSQL database of the stores, from the environment.

If a password contains a `/` or `@` that is not written as %XX, a part of it is read as the host or
the database. Messages show both, so such an address is refused.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from typing import Any, Final

from coreeval.errors import ConfigError
from coreeval.tools.extras import require_extra
from coreeval.tools.stores.places import URL_VARIABLE

_URL_HINT: Final = f"{URL_VARIABLE}=postgresql://USER:PASSWORD@HOST:5432/DATABASE"
_PARTS = re.compile(r"\w+://(?:[^@/?]*@)?[^@/?]*(?:/[^@/?:]*)?(?:\?[^@?]*)?")
"""An address with at most one `@`, before the host."""


@dataclass(frozen=True, kw_only=True)
class StoreServer:
    """The database that `COREEVAL_STORE_URL` names."""

    parameters: Mapping[str, Any] = field(repr=False)
    """The connection parameters of libpq; may contain a password."""

    @property
    def place(self) -> str:
        """User, host, port and database, for messages."""
        told = {key: str(value) for key, value in self.parameters.items()}
        user = told.get("user") or os.environ.get("PGUSER", "")
        host = told.get("host") or os.environ.get("PGHOST") or "localhost"
        port = told.get("port") or os.environ.get("PGPORT") or "5432"
        database = told.get("dbname") or os.environ.get("PGDATABASE") or user
        return f"{user}@{host}:{port}/{database}" if user else f"{host}:{port}/{database}"


def read_server() -> StoreServer:
    """Return the database that `COREEVAL_STORE_URL` names.

    Raises:
        ConfigError: the variable is missing or is not an address, or psycopg is not installed.
    """
    url = os.environ.get(URL_VARIABLE, "").strip()
    if not url:
        raise ConfigError(
            f"a store in PostgreSQL needs the variable {URL_VARIABLE}, which is not set",
            where="run.store",
            hint=_URL_HINT,
        )
    with require_extra("postgresql", "a store in PostgreSQL", where="run.store", error=ConfigError):
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    try:
        if not url.startswith(("postgresql://", "postgres://")):
            raise ValueError
        parameters = conninfo_to_dict(url)
        if not _is_unmistakable(url, parameters):
            raise ValueError
    except (psycopg.ProgrammingError, ValueError):  # its message may contain the password
        raise ConfigError(
            f"{URL_VARIABLE} is not the address of a PostgreSQL database",
            where=URL_VARIABLE,
            hint=f"{_URL_HINT}, with %XX for characters other than letters and digits in a "
            "password",
        ) from None
    return StoreServer(parameters=parameters)


def _is_unmistakable(url: str, parameters: Mapping[str, Any]) -> bool:
    """Return whether no part of an address can belong to another part, such as the password."""
    told = {key: str(value) for key, value in parameters.items()}
    hosts, ports = (told.get(key, "").split(",") for key in ("host", "port"))
    return (
        bool(_PARTS.fullmatch(url))
        and all(map(_is_host, hosts))
        and all(re.fullmatch(r"[0-9]{0,5}", port) for port in ports)
        and not re.search(r"[@:/]", told.get("dbname", ""))
    )


def _is_host(host: str) -> bool:
    """Return whether a text is a name, the folder of a socket, or the address of a machine."""
    if re.fullmatch(r"[^@:]*", host):
        return True
    try:
        return bool(ip_address(host))
    except ValueError:
        return False
