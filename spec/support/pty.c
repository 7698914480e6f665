/* pty.c: programs at a pseudo-terminal, for spec/support/dialogue.lua. */
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUBLIC __attribute__((visibility("default")))

PUBLIC int spec_pty_start(const char *const *argv, int rows, int columns, int *pid);
PUBLIC int spec_pty_read(int fd, char *buffer, int bytes, int milliseconds);
PUBLIC int spec_pty_write(int fd, const char *text, int bytes);
PUBLIC int spec_pty_end(int fd, int pid, int milliseconds);

/* Starts argv[0], found in PATH, with a terminal of its own. Returns the other end of it, or -1. */
int spec_pty_start(const char *const *argv, int rows, int columns, int *pid) {
  struct winsize size = {.ws_row = (unsigned short)rows, .ws_col = (unsigned short)columns};
  int fd = -1;
  *pid = forkpty(&fd, NULL, NULL, &size);
  if (*pid == 0) {
    signal(SIGINT, SIG_DFL);
    execvp(argv[0], (char *const *)argv);
    _exit(127);
  }
  return *pid < 0 ? -1 : fd;
}

/* What the program has written: the number of bytes, 0 after its end, -1 if nothing came in time. */
int spec_pty_read(int fd, char *buffer, int bytes, int milliseconds) {
  struct pollfd p = {.fd = fd, .events = POLLIN};
  if (poll(&p, 1, milliseconds) <= 0)
    return -1;
  ssize_t n = read(fd, buffer, (size_t)bytes);
  return n > 0 ? (int)n : 0; /* the end of a terminal reads as an error */
}

int spec_pty_write(int fd, const char *text, int bytes) { return (int)write(fd, text, (size_t)bytes); }

/* Waits for the program's end, closes the terminal and returns the exit status: 128 and the signal's number if it died of one, -1
 * if it was still there and was killed. */
int spec_pty_end(int fd, int pid, int milliseconds) {
  int status = 0;
  while (waitpid(pid, &status, WNOHANG) == 0) {
    if (milliseconds <= 0) {
      kill(pid, SIGKILL);
      waitpid(pid, &status, 0);
      close(fd);
      return -1;
    }
    poll(NULL, 0, 10);
    milliseconds -= 10;
  }
  close(fd);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
