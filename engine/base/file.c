/* file.c: a file that is written whole or not at all.
 *
 * It is written as .NAME.saving-PID-N beside NAME, flushed to the disk, and renamed to NAME; then the folder is flushed. Its
 * writer holds a lock on it, which ends with the process however that ends: a file of that form that nobody has locked is litter.
 */
#include "file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"
#include "engine/perigee.h"
#include "status.h"

enum { MOST_LINKS = 40 }; /* as many as Linux follows */

struct file {
  int fd, folder;               /* -1: not open */
  int unfinished;               /* `temporary` is there */
  const char *name;             /* in the folder; part of path */
  char path[PATH_MAX];          /* where it is to be */
  char temporary[NAME_MAX + 1]; /* in the folder */
};

static int refuse(const file *f, const char *what) {
  return fail(PGEE_SYSTEM, "cannot %s '%s': %s", what, f->path, strerror(errno));
}

/* Where a path leads: links at its end are followed, also to a file that is not there yet. Links before it are for the system. */
static int follow(file *f, const char *path) {
  char link[PATH_MAX];
  if (strlen(path) >= sizeof f->path)
    return fail(PGEE_SYSTEM, "cannot write '%.200s...': the path is too long", path);
  strcpy(f->path, path);
  for (int links = 0;; links++) {
    ssize_t n = readlink(f->path, link, sizeof link);
    if (n < 0) /* no link, or a new name */
      return PGEE_OK;
    if (links == MOST_LINKS)
      return fail(PGEE_SYSTEM, "cannot write '%s': it leads through more than %d symbolic links", path, MOST_LINKS);
    char *slash = strrchr(f->path, '/');
    size_t at = slash && *link != '/' ? (size_t)(slash + 1 - f->path) : 0, length = (size_t)n;
    if (at + length >= sizeof f->path)
      return fail(PGEE_SYSTEM, "cannot write '%.200s...': the path of its link is too long", path);
    memcpy(f->path + at, link, length);
    f->path[at + length] = 0;
  }
}

/* Splits the path into an open folder and a name. there: what has the name; its st_mode is 0 if nothing has. */
static int open_folder(file *f, const char *path, struct stat *there) {
  *there = (struct stat){0};
  TRY(follow(f, path));
  if (stat(f->path, there) == 0) {
    if (!S_ISREG(there->st_mode))
      return fail(PGEE_SYSTEM, "cannot write '%s': it is %s, expected a file", f->path,
                  S_ISDIR(there->st_mode) ? "a directory" : "not a regular file");
    if (faccessat(AT_FDCWD, f->path, W_OK, AT_EACCESS) != 0) /* who may rename in the folder could replace it all the same */
      return refuse(f, "write");
  }
  char *slash = strrchr(f->path, '/');
  f->name = slash ? slash + 1 : f->path;
  if (!*f->name)
    return fail(PGEE_SYSTEM, "cannot write '%s': expected the path of a file", f->path);
  if (slash)
    *slash = 0;
  f->folder = open(!slash ? "." : slash == f->path ? "/" : f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (slash)
    *slash = '/';
  return f->folder < 0 ? refuse(f, "write") : PGEE_OK;
}

/* Removes the file of that name in the folder unless a living process has it. */
static void remove_abandoned(int folder, const char *name) {
  int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0)
    return;
  if (flock(fd, LOCK_EX | LOCK_NB) == 0)
    unlinkat(folder, name, 0);
  close(fd);
}

/* Whether the end of a name is PID-N. */
static int is_number_pair(const char *end) {
  static const char digits[] = "0123456789";
  size_t pid = strspn(end, digits), n = pid && end[pid] == '-' ? strspn(end + pid + 1, digits) : 0;
  return n && !end[pid + 1 + n];
}

static void remove_litter(const file *f) {
  char prefix[NAME_MAX + 1];
  int length = snprintf(prefix, sizeof prefix, ".%s.saving-", f->name), fd = openat(f->folder, ".", O_RDONLY | O_CLOEXEC);
  DIR *entries = fd < 0 ? NULL : fdopendir(fd);
  if (!entries) {
    if (fd >= 0)
      close(fd);
    return;
  }
  for (struct dirent *e; (e = readdir(entries));)
    if (length < (int)sizeof prefix && strncmp(e->d_name, prefix, (size_t)length) == 0 && is_number_pair(e->d_name + length))
      remove_abandoned(f->folder, e->d_name);
  closedir(entries);
}

/* A new file under a name of its own, locked. Between its making and its lock another process may have taken it for litter. */
static int open_temporary(file *f) {
  static _Atomic int number;
  for (int tries = 0; tries < 100; tries++) {
    struct stat s;
    int length = snprintf(f->temporary, sizeof f->temporary, ".%s.saving-%d-%d", f->name, (int)getpid(), ++number);
    if (length >= (int)sizeof f->temporary)
      return fail(PGEE_SYSTEM, "cannot write '%s': the name is too long", f->path);
    f->fd = openat(f->folder, f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (f->fd < 0 && errno == EEXIST)
      continue; /* of another machine or namespace that shares the folder */
    if (f->fd < 0)
      return refuse(f, "write");
    f->unfinished = 1;
    while (flock(f->fd, LOCK_EX) != 0)
      if (errno != EINTR)
        return PGEE_OK; /* a file system without locks */
    if (fstat(f->fd, &s) == 0 && s.st_nlink > 0)
      return PGEE_OK;
    close(f->fd);
    f->fd = -1;
    f->unfinished = 0;
  }
  return fail(PGEE_SYSTEM, "cannot write '%s': no name beside it is free", f->path);
}

/* Owner, group and permissions of the file that is replaced; of the first two, what this process may give. */
static int take_after(file *f, const struct stat *there) {
  int given = fchown(f->fd, there->st_uid, there->st_gid) == 0 || fchown(f->fd, (uid_t)-1, there->st_gid) == 0;
  (void)given;
  return fchmod(f->fd, there->st_mode & 07777) != 0 ? refuse(f, "set the permissions of") : PGEE_OK;
}

int file_new(file **out, const char *path) {
  file *f = mem_new(sizeof *f);
  struct stat there;
  if (!f)
    return PGEE_MEMORY;
  f->fd = f->folder = -1;
  int status = open_folder(f, path, &there);
  if (status == PGEE_OK) {
    remove_litter(f);
    status = open_temporary(f);
  }
  if (status == PGEE_OK && there.st_mode)
    status = take_after(f, &there);
  if (status == PGEE_OK)
    *out = f;
  else
    file_free(f);
  return status;
}

int file_write(file *f, const void *bytes, int64_t count) {
  const char *from = bytes;
  while (count > 0) {
    ssize_t n = write(f->fd, from, count < 1 << 30 ? (size_t)count : 1 << 30);
    if (n < 0 && errno != EINTR)
      return refuse(f, "write");
    from += n > 0 ? n : 0;
    count -= n > 0 ? n : 0;
  }
  return PGEE_OK;
}

int file_keep(file *f) {
  if (fsync(f->fd) != 0)
    return refuse(f, "write");
  if (renameat(f->folder, f->temporary, f->folder, f->name) != 0)
    return refuse(f, "replace");
  f->unfinished = 0;
  if (fsync(f->folder) != 0 && errno != EINVAL) /* EINVAL: a file system whose folders need none */
    return refuse(f, "flush the folder of");
  return PGEE_OK;
}

void file_free(file *f) {
  if (!f)
    return;
  if (f->unfinished)
    unlinkat(f->folder, f->temporary, 0);
  if (f->fd >= 0)
    close(f->fd);
  if (f->folder >= 0)
    close(f->folder);
  mem_free(f);
}
