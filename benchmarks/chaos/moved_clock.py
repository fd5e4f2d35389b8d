"""A clock that a case moves while a command runs: the whole process believes it, SQLite included.

A small library, compiled here and loaded before all others (LD_PRELOAD), adds to the clocks what a
file says. What waits until a moment of the moved clock is told the real one, so that it wakes.
"""

import mmap
import os
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

DAY_S: Final = 86_400.0
YEAR_S: Final = 365 * DAY_S
HOUR_S: Final = 3600.0
VARIABLE: Final = "MOVED_CLOCK"
_NANO: Final = 1_000_000_000
_SOURCE: Final = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#define NANO 1000000000LL
#define REAL(name) static __typeof__(name) *real; if (!real) real = dlsym(RTLD_NEXT, #name)

static volatile long long *moved;

__attribute__((constructor)) static void open_file(void) {
    const char *path = getenv("MOVED_CLOCK");
    int file = path ? open(path, O_RDONLY) : -1;
    if (file < 0) return;
    void *found = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
    if (found != MAP_FAILED) moved = found;
    close(file);
}

static long long by(clockid_t id) {
    if (!moved) return 0;
    if (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE) return moved[0];
    if (id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE || id == CLOCK_MONOTONIC_RAW
        || id == CLOCK_BOOTTIME) return moved[1];
    return 0;
}

static struct timespec plus(struct timespec at, long long nano) {
    long long sum = at.tv_sec * NANO + at.tv_nsec + nano;
    if (sum < 0) sum = 0;
    return (struct timespec){sum / NANO, sum % NANO};
}

int clock_gettime(clockid_t id, struct timespec *at) {
    REAL(clock_gettime);
    int code = real(id, at);
    if (!code) *at = plus(*at, by(id));
    return code;
}

time_t time(time_t *at) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (at) *at = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone) {
    (void)zone;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    at->tv_sec = now.tv_sec;
    at->tv_usec = now.tv_nsec / 1000;
    return 0;
}

int clock_nanosleep(clockid_t id, int flags, const struct timespec *until, struct timespec *left) {
    REAL(clock_nanosleep);
    struct timespec at = flags & TIMER_ABSTIME ? plus(*until, -by(id)) : *until;
    return real(id, flags, &at, left);
}

int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict until) {
    REAL(sem_timedwait);
    struct timespec at = plus(*until, -by(CLOCK_REALTIME));
    return real(sem, &at);
}

int sem_clockwait(sem_t *restrict sem, clockid_t id, const struct timespec *restrict until) {
    REAL(sem_clockwait);
    struct timespec at = plus(*until, -by(id));
    return real(sem, id, &at);
}

int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           clockid_t id, const struct timespec *restrict until) {
    REAL(pthread_cond_clockwait);
    struct timespec at = plus(*until, -by(id));
    return real(cond, mutex, id, &at);
}
"""


def compiler() -> str:
    """Return the C compiler of this machine; empty where there is none."""
    return shutil.which("cc") or shutil.which("gcc") or ""


def obstacle() -> str:
    """Return why no clock can be moved here; empty where one can."""
    if not sys.platform.startswith("linux"):
        return "it needs Linux"
    return "" if compiler() else "it needs a C compiler"


@dataclass(frozen=True)
class MovedClock:
    """The clock of those processes that are started with `environment`."""

    folder: Path

    @classmethod
    def made_in(cls, folder: Path) -> "MovedClock":
        """Compile the library into a folder; the clock is right at first."""
        folder.mkdir(parents=True, exist_ok=True)
        clock = cls(folder)
        source = folder / "clock.c"
        source.write_text(_SOURCE, encoding="utf-8")
        command = [compiler(), "-shared", "-fPIC", "-O1", "-o", clock.library, source, "-ldl"]
        subprocess.run([*map(str, command), "-lpthread"], check=True)
        clock.file.write_bytes(struct.pack("=qq", 0, 0))
        return clock

    @property
    def library(self) -> Path:
        """What is loaded before all other libraries."""
        return self.folder / "clock.so"

    @property
    def file(self) -> Path:
        """By how much the clocks are moved, in nanoseconds: time of day, then running time."""
        return self.folder / "moved"

    @property
    def environment(self) -> dict[str, str]:
        """What a process needs to believe it."""
        return {**os.environ, "LD_PRELOAD": str(self.library), VARIABLE: str(self.file)}

    def move(self, wall_s: float = 0.0, running_s: float = 0.0) -> None:
        """Let the clocks be ahead of the real ones by so much from now on.

        Args:
            wall_s: The time of day; negative for behind.
            running_s: The clock that never goes back; do not take back what it was given.
        """
        told = struct.pack("=qq", int(wall_s * _NANO), int(running_s * _NANO))
        with self.file.open("r+b") as file, mmap.mmap(file.fileno(), len(told)) as shared:
            shared[:] = told
