/* Keeps what the disk has been made to take: loaded into a process (LD_PRELOAD), it copies each
   file that is flushed under DURABLE_ROOT to DURABLE_LOG, and notes renames and removals between.
   Each line of DURABLE_LOG/log is one event: its time, its kind, and the paths. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int watched(const char *path) {
  const char *root = getenv("DURABLE_ROOT");
  return root && path && strncmp(path, root, strlen(root)) == 0;
}

static void note(char kind, const char *first, const char *second) {
  char line[3 * PATH_MAX], file[PATH_MAX];
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  int size = snprintf(line, sizeof line, "%ld.%06ld\t%c\t%s\t%s\n", (long)now.tv_sec,
                      now.tv_nsec / 1000, kind, first, second);
  snprintf(file, sizeof file, "%s/log", getenv("DURABLE_LOG"));
  int log = open(file, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0 || write(log, line, size) != size) abort();
  close(log);
}

static void resolve(int folder, const char *path, char *into) {
  char link[64], base[PATH_MAX] = "";
  if (path[0] == '/') {
    snprintf(into, PATH_MAX, "%s", path);
    return;
  }
  if (folder == AT_FDCWD) {
    if (!getcwd(base, sizeof base)) abort();
  } else {
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    ssize_t size = readlink(link, base, sizeof base - 1);
    base[size < 0 ? 0 : size] = 0;
  }
  if (snprintf(into, PATH_MAX, "%s/%s", base, path) >= PATH_MAX) abort();
}

static void keep(int file) {
  static int count;
  char link[64], path[PATH_MAX], name[64], target[PATH_MAX], buffer[1 << 16];
  struct stat told;
  snprintf(link, sizeof link, "/proc/self/fd/%d", file);
  ssize_t size = readlink(link, path, sizeof path - 1), got;
  path[size < 0 ? 0 : size] = 0;
  if (!watched(path) || fstat(file, &told) || told.st_nlink == 0) return;
  if (S_ISDIR(told.st_mode)) {
    note('D', path, "");
    return;
  }
  pthread_mutex_lock(&lock);
  snprintf(name, sizeof name, "%d-%d", getpid(), count++);
  snprintf(target, sizeof target, "%s/%s", getenv("DURABLE_LOG"), name);
  int to = open(target, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  if (to < 0) abort();
  /* By its own descriptor: SQLite's locks of a file go with the first other one that is closed. */
  for (off_t at = 0; (got = pread(file, buffer, sizeof buffer, at)) != 0; at += got)
    if (got < 0 || write(to, buffer, got) != got) abort();
  close(to);
  note('S', path, name);
  pthread_mutex_unlock(&lock);
}

int fsync(int file) {
  int done = syscall(SYS_fsync, file);
  if (!done) keep(file);
  return done;
}

int fdatasync(int file) {
  int done = syscall(SYS_fdatasync, file);
  if (!done) keep(file);
  return done;
}

static int moved(int from, const char *old, int to, const char *new, unsigned flags) {
  char first[PATH_MAX], second[PATH_MAX];
  resolve(from, old, first);
  resolve(to, new, second);
  int done = syscall(SYS_renameat2, from, old, to, new, flags);
  if (!done && watched(second)) note('R', first, second);
  return done;
}

int rename(const char *old, const char *new) { return moved(AT_FDCWD, old, AT_FDCWD, new, 0); }

int renameat(int from, const char *old, int to, const char *new) {
  return moved(from, old, to, new, 0);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags) {
  return moved(from, old, to, new, flags);
}

static int removed(int folder, const char *path, int flags) {
  char first[PATH_MAX];
  resolve(folder, path, first);
  int done = syscall(SYS_unlinkat, folder, path, flags);
  if (!done && watched(first)) note('U', first, "");
  return done;
}

int unlink(const char *path) { return removed(AT_FDCWD, path, 0); }

int rmdir(const char *path) { return removed(AT_FDCWD, path, AT_REMOVEDIR); }

int unlinkat(int folder, const char *path, int flags) { return removed(folder, path, flags); }
