/* map.c: the bytes of a file, mapped read-only or copied into memory. Linux reads a page of a mapped file when it is first
 * used, and all processes that map the file share its pages. */
#include "map.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "engine/perigee.h"
#include "status.h"

static int map_pages(map *m, int fd) {
  void *data = mmap(NULL, (size_t)m->bytes, PROT_READ, MAP_PRIVATE, fd, 0);
  if (data == MAP_FAILED)
    return fail(PGEE_SYSTEM, "cannot map '%s' (%lld bytes): %s", m->path, (long long)m->bytes, strerror(errno));
  m->data = data;
  return PGEE_OK;
}

static int map_copy(map *m, int fd) {
  if (!(m->copy = mem_new(m->bytes)))
    return PGEE_MEMORY;
  for (int64_t at = 0; at < m->bytes;) {
    ssize_t n = pread(fd, m->copy + at, (size_t)(m->bytes - at), at);
    if (n < 0 && errno != EINTR)
      return fail(PGEE_SYSTEM, "cannot read '%s': %s", m->path, strerror(errno));
    if (n == 0)
      return fail(PGEE_FORMAT, "'%s' was cut off while it was read, at byte %lld of %lld", m->path, (long long)at,
                  (long long)m->bytes);
    at += n > 0 ? n : 0;
  }
  m->data = m->copy;
  return PGEE_OK;
}

/* Maps or copies the open file into m. The caller closes fd, also after a failure. */
static int map_descriptor(map *m, int fd, int copy) {
  struct stat s;
  if (fstat(fd, &s) != 0)
    return fail(PGEE_SYSTEM, "cannot read the size of '%s': %s", m->path, strerror(errno));
  if (S_ISDIR(s.st_mode))
    return fail(PGEE_SYSTEM, "cannot open '%s': it is a directory, expected a file", m->path);
  if (!S_ISREG(s.st_mode))
    return fail(PGEE_SYSTEM, "cannot open '%s': it is not a regular file", m->path);
  if (s.st_size == 0)
    return fail(PGEE_SYSTEM, "'%s' is empty", m->path);
  m->bytes = s.st_size;
  return copy ? map_copy(m, fd) : map_pages(m, fd);
}

int map_open(map **out, const char *path, int copy) {
  /* O_NONBLOCK: opening a pipe must not block; it is refused below. The flag has no effect on a regular file. */
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return fail(PGEE_SYSTEM, "cannot open '%s': %s", path, strerror(errno));
  map *m = mem_new(sizeof *m);
  int status = PGEE_MEMORY;
  if (m && (m->path = mem_string(path))) {
    m->refs = 1;
    status = map_descriptor(m, fd, copy);
  }
  close(fd);
  if (status == PGEE_OK)
    *out = m;
  else
    map_free(m);
  return status;
}

map *map_hold(map *m) {
  if (m)
    atomic_fetch_add(&m->refs, 1);
  return m;
}

void map_free(map *m) {
  if (!m || atomic_fetch_sub(&m->refs, 1) > 1)
    return;
  if (m->data && !m->copy)
    munmap((void *)m->data, (size_t)m->bytes);
  mem_free(m->copy);
  mem_free(m->path);
  mem_free(m);
}
