"""A PostgreSQL server of a test's own: on a socket in a folder, as a user without rights."""

import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

PATIENCE_S = 60
_NOBODY = "nobody"


def find_programs() -> Path | None:
    """Return the folder of the newest server's programs; None if there is none."""
    places = Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")
    found = sorted((path.parent for path in places), key=lambda path: int(path.parent.name))
    on_path = shutil.which("pg_ctl")
    return found[-1] if found else Path(on_path).parent if on_path else None


@dataclass
class Server:
    """A server with the user `tester`, which may do everything."""

    programs: Path
    folder: Path
    """Short, because the path of a socket is."""

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def url(self) -> str:
        return self.url_of("tester")

    def url_of(self, user: str, password: str = "", database: str = "postgres") -> str:
        secret = f":{quote(password)}" if password else ""
        return f"postgresql://{user}{secret}@/{database}?host={self.folder}"

    def create(self) -> None:
        if os.geteuid() == 0:
            nobody = pwd.getpwnam(_NOBODY)
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        made = ["--username=tester", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        self._run("initdb", "--pgdata", str(self.data), "--locale=C.UTF-8", *made)

    def start(self, **settings: object) -> None:
        chosen = {
            "listen_addresses": "''",
            "unix_socket_directories": str(self.folder),
            "fsync": "on",
            **settings,
        }
        options = " ".join(f"-c {name}={value}" for name, value in chosen.items())
        log = str(self.folder / "log")
        self._run("pg_ctl", "start", "--pgdata", str(self.data), "--log", log, "-w", "-o", options)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "--pgdata", str(self.data), "-m", "fast", "-w")

    def kill(self) -> None:
        """End the server as by a power cut: its processes are killed."""
        pid = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for each in (pid, *map(int, children)):
            try:
                os.kill(each, signal.SIGKILL)
            except ProcessLookupError:
                continue
        end = time.monotonic() + PATIENCE_S
        while Path(f"/proc/{pid}").exists() and _state(pid) != "Z" and time.monotonic() < end:
            time.sleep(0.01)
        for path in (self.data / "postmaster.pid", self.folder / ".s.PGSQL.5432.lock"):
            path.unlink()  # the number of a killed process may still be taken

    def sql(self, statement: str, database: str = "postgres") -> str:
        """Return what psql prints."""
        told = ["-h", str(self.folder), "-U", "tester", "-d", database]
        return self._run("psql", *told, "-X", "-At", "-v", "ON_ERROR_STOP=1", "-c", statement)

    def write(self, name: str, text: str) -> None:
        """Write a file of the server's folder of data."""
        (self.data / name).write_text(text)

    def _run(self, program: str, *arguments: str) -> str:
        as_nobody: Sequence[str] = ()
        if os.geteuid() == 0:
            as_nobody = ["setpriv", f"--reuid={_NOBODY}", "--regid=nogroup", "--clear-groups"]
        environment = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}
        done = subprocess.run(
            [*as_nobody, str(self.programs / program), *arguments],
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if program != "psql" else subprocess.PIPE,
            text=True,
            timeout=PATIENCE_S,
        )
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr or ''}")
        return done.stdout.strip()


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return "Z"


def make_server(programs: Path) -> Server:
    """Return a server that has not been started, in a new folder."""
    folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp" if sys.platform != "win32" else None))
    folder.chmod(0o755)
    server = Server(programs, folder)
    server.create()
    return server
