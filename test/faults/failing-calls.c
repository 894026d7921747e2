/*
 * This library is preloaded into a service. It makes chosen file system calls fail, or ends the process at them, as the test demands that
 * started the service. Only calls for files in the folder LOGSTRATA_FAULT_FOLDER count. The planned fault is in the file
 * LOGSTRATA_FAULT_CONTROL, which the test and the service both map into memory.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum kind { WRITE = 1, SYNC = 2, NAME = 4, OPEN = 8, CREATE = 16, REMOVE = 32 };
enum action { NOTHING = 0, FAIL = 1, KILL = 2, KILL_IN_WRITE = 3 };

/* Must agree with `fields` of failing-calls.ts. */
struct control {
  uint64_t calls; /* number of calls of the counted kinds so far */
  uint64_t hits;  /* number of those calls that the fault was applied to */
  uint64_t kinds; /* the counted kinds of calls */
  uint64_t from;  /* calls fail from this number on, */
  uint64_t until; /* and before this one */
  uint64_t action;
  uint64_t error;
};

static struct control *control;
static const char *folder;
static size_t folder_length;

__attribute__((constructor)) static void prepare(void) {
  const char *path = getenv("LOGSTRATA_FAULT_CONTROL");
  folder = getenv("LOGSTRATA_FAULT_FOLDER");
  if (path == NULL || folder == NULL) return;
  folder_length = strlen(folder);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) abort();
  void *mapped = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (mapped == MAP_FAILED) abort();
  close(fd);
  control = mapped;
}

static int is_inside(const char *path) {
  /* The service runs in the folder, so a relative path leads into it. */
  if (path[0] != '/') return 1;
  return strncmp(path, folder, folder_length) == 0 && (path[folder_length] == '/' || path[folder_length] == 0);
}

static int is_file_inside(int fd) {
  char link[64], path[PATH_MAX];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  ssize_t length = readlink(link, path, sizeof path - 1);
  if (length < 0) return 0;
  path[length] = 0;
  return path[0] == '/' && is_inside(path);
}

/* The fault for a call of these kinds on a file in the folder. */
static enum action next(unsigned kinds) {
  if ((control->kinds & kinds) == 0) return NOTHING;
  uint64_t number = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
  if (control->action == NOTHING || number < control->from || number >= control->until) return NOTHING;
  __atomic_add_fetch(&control->hits, 1, __ATOMIC_SEQ_CST);
  if (control->action == KILL) kill(getpid(), SIGKILL);
  if (control->action == KILL_IN_WRITE && kinds != WRITE) kill(getpid(), SIGKILL);
  return control->action;
}

static enum action at_path(const char *path, unsigned kinds) {
  return control != NULL && path != NULL && is_inside(path) ? next(kinds) : NOTHING;
}

static enum action at_file(int fd, unsigned kinds) {
  return control != NULL && (control->kinds & kinds) != 0 && is_file_inside(fd) ? next(kinds) : NOTHING;
}

static int failed(void) {
  errno = (int)control->error;
  return -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define INSTEAD(what)                 \
  switch (what) {                     \
    case NOTHING: break;              \
    default: return failed();         \
  }

/* When the process ends at a write, half of the data is written; a failed write has written half of it, too. */
#define WRITTEN_HALF(fd, write_half)              \
  switch (at_file(fd, WRITE)) {                   \
    case NOTHING: break;                          \
    case KILL_IN_WRITE:                           \
      (void)!(write_half);                        \
      kill(getpid(), SIGKILL);                    \
      return failed();                            \
    default: (void)!(write_half); return failed(); \
  }

ssize_t write(int fd, const void *bytes, size_t count) {
  WRITTEN_HALF(fd, REAL(write)(fd, bytes, count / 2))
  return REAL(write)(fd, bytes, count);
}

ssize_t pwrite64(int fd, const void *bytes, size_t count, off64_t offset) {
  WRITTEN_HALF(fd, REAL(pwrite64)(fd, bytes, count / 2, offset))
  return REAL(pwrite64)(fd, bytes, count, offset);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  WRITTEN_HALF(fd, REAL(pwrite)(fd, bytes, count / 2, offset))
  return REAL(pwrite)(fd, bytes, count, offset);
}

ssize_t writev(int fd, const struct iovec *pieces, int count) {
  WRITTEN_HALF(fd, REAL(writev)(fd, pieces, count / 2))
  return REAL(writev)(fd, pieces, count);
}

ssize_t pwritev64(int fd, const struct iovec *pieces, int count, off64_t offset) {
  WRITTEN_HALF(fd, REAL(pwritev64)(fd, pieces, count / 2, offset))
  return REAL(pwritev64)(fd, pieces, count, offset);
}

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset) {
  WRITTEN_HALF(fd, REAL(pwritev)(fd, pieces, count / 2, offset))
  return REAL(pwritev)(fd, pieces, count, offset);
}

int fsync(int fd) {
  INSTEAD(at_file(fd, SYNC))
  return REAL(fsync)(fd);
}

int fdatasync(int fd) {
  INSTEAD(at_file(fd, SYNC))
  return REAL(fdatasync)(fd);
}

int rename(const char *from, const char *to) {
  INSTEAD(at_path(to, NAME | CREATE))
  return REAL(rename)(from, to);
}

int link(const char *from, const char *to) {
  INSTEAD(at_path(to, NAME | CREATE))
  return REAL(link)(from, to);
}

int mkdir(const char *path, mode_t mode) {
  INSTEAD(at_path(path, CREATE))
  return REAL(mkdir)(path, mode);
}

int unlink(const char *path) {
  INSTEAD(at_path(path, REMOVE))
  return REAL(unlink)(path);
}

int rmdir(const char *path) {
  INSTEAD(at_path(path, REMOVE))
  return REAL(rmdir)(path);
}

int ftruncate64(int fd, off64_t length) {
  INSTEAD(at_file(fd, REMOVE))
  return REAL(ftruncate64)(fd, length);
}

int ftruncate(int fd, off_t length) {
  INSTEAD(at_file(fd, REMOVE))
  return REAL(ftruncate)(fd, length);
}

static mode_t mode_of(int flags, va_list arguments) {
  return (flags & (O_CREAT | O_TMPFILE)) != 0 ? (mode_t)va_arg(arguments, int) : 0;
}

static unsigned kinds_of_open(int flags) {
  return (flags & O_CREAT) != 0 ? OPEN | CREATE : OPEN;
}

#define OPENING(name)                                  \
  int name(const char *path, int flags, ...) {         \
    va_list arguments;                                 \
    va_start(arguments, flags);                        \
    mode_t mode = mode_of(flags, arguments);           \
    va_end(arguments);                                 \
    INSTEAD(at_path(path, kinds_of_open(flags)))       \
    return REAL(name)(path, flags, mode);              \
  }

OPENING(open)
OPENING(open64)
