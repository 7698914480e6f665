/* host.c: a C program that embeds texts with an artifact. It links Perigee's library and LuaJIT, and needs nothing else.
 *
 *   host ARTIFACT TEXT...        prints the first numbers of each text's vector, and its cosine with the first
 *
 *   cc host.c -o host $(pkg-config --cflags --libs luajit) -lperigee -lpthread -lm          (`make embed` in the source tree)
 *
 * A session is a Lua state and a model that is open in it. Only one thread at a time may use a state. This program has two
 * threads with a session each; both map the same pages of the file, so that the weights are in memory once. C calls Lua in
 * protected mode: a Lua error becomes a message and does not end the program. Lua returns a tensor's handle as a number, and C
 * reads the tensor's memory without a copy.
 *
 * LuaJIT finds `require "perigee"` in PREFIX/share/lua/5.1; LUA_PATH names another place. */
#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>
#include <math.h>
#include <perigee.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The Lua code of a session. C calls it with the artifact's path. It returns a function that takes texts and returns the handle
 * of their vectors, F32 [n][H]. The vectors stay valid until the function is called again. */
static const char script[] = "local perigee, ffi = require 'perigee', require 'ffi'\n"
                             "local model, vectors = perigee.open((...)), nil\n"
                             "return function(...)\n"
                             "  vectors = model:embed { ... }\n"
                             "  return tonumber(ffi.cast('uintptr_t', require('perigee.tensor').handle(vectors)))\n"
                             "end\n";

typedef struct {
  lua_State *L;
  char message[512]; /* the error of the last call that failed */
} session;

/* Keeps the error on top of Lua's stack as the message, and cuts the stack to its first `stay` values. */
static int failed(session *s, int stay) {
  const char *text = lua_tostring(s->L, -1);
  snprintf(s->message, sizeof s->message, "%s", text ? text : "an error that is no text");
  lua_settop(s->L, stay);
  return 1;
}

/* Opens the artifact in a new state. The function that embeds stays at the bottom of the state's stack. */
static int session_open(session *s, const char *artifact) {
  *s = (session){.L = luaL_newstate()};
  if (!s->L) {
    snprintf(s->message, sizeof s->message, "no memory for a Lua state");
    return 1;
  }
  luaL_openlibs(s->L);
  if (luaL_loadbuffer(s->L, script, sizeof script - 1, "=host"))
    return failed(s, 0);
  lua_pushstring(s->L, artifact);
  return lua_pcall(s->L, 1, 1, 0) ? failed(s, 0) : 0;
}

/* The vectors of texts, [count][*width], valid until the session's next call. */
static int session_embed(session *s, char **texts, int count, const float **vectors, int64_t *width) {
  if (!lua_checkstack(s->L, count + 2)) {
    snprintf(s->message, sizeof s->message, "%d texts are too many at once", count);
    return 1;
  }
  lua_pushvalue(s->L, 1);
  for (int i = 0; i < count; i++)
    lua_pushstring(s->L, texts[i]);
  if (lua_pcall(s->L, count, 1, 0))
    return failed(s, 1); /* the function stays: the session can be used again */
  const pgee_tensor *t = (const pgee_tensor *)(uintptr_t)lua_tonumber(s->L, -1);
  lua_settop(s->L, 1);
  *vectors = pgee_tensor_data(t);
  *width = pgee_tensor_dim(t, 1);
  return 0;
}

static void session_close(session *s) {
  if (s->L)
    lua_close(s->L);
}

/* ---- The program -------------------------------------------------------------------------------------------------- */

typedef struct {
  const char *artifact;
  char **texts;
  int count;
  session session;
  const float *vectors;
  int64_t width;
  int status;
} job;

static void *work(void *argument) {
  job *j = argument;
  j->status = session_open(&j->session, j->artifact);
  if (!j->status)
    j->status = session_embed(&j->session, j->texts, j->count, &j->vectors, &j->width);
  return NULL;
}

static double cosine(const float *a, const float *b, int64_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < n; i++) {
    ab += (double)a[i] * b[i];
    aa += (double)a[i] * a[i];
    bb += (double)b[i] * b[i];
  }
  return ab / sqrt(aa * bb);
}

int main(int argc, char **argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: host ARTIFACT TEXT...\n");
    return 2;
  }
  job jobs[2];
  pthread_t threads[2];
  int started[2], status = 0;
  for (int i = 0; i < 2; i++) {
    jobs[i] = (job){.artifact = argv[1], .texts = argv + 2, .count = argc - 2};
    started[i] = pthread_create(&threads[i], NULL, work, &jobs[i]) == 0;
  }
  for (int i = 0; i < 2; i++) {
    if (!started[i] || pthread_join(threads[i], NULL)) {
      fprintf(stderr, "host: cannot start a thread\n");
      status = 1;
    }
    if (jobs[i].status)
      fprintf(stderr, "host: session %d: %s\n", i + 1, jobs[i].session.message);
    status |= jobs[i].status;
  }
  const job *j = &jobs[0];
  if (!status && memcmp(j->vectors, jobs[1].vectors, sizeof(float) * (size_t)(j->count * j->width)) != 0) {
    fprintf(stderr, "host: the two sessions differ\n");
    status = 1;
  }
  for (int i = 0; !status && i < j->count; i++) {
    const float *v = j->vectors + i * j->width;
    printf("%.9g %.9g %.9g ... (%lld), cosine %.4f: %s\n", v[0], v[1], v[2], (long long)j->width, cosine(j->vectors, v, j->width),
           j->texts[i]);
  }
  for (int i = 0; i < 2; i++)
    session_close(&jobs[i].session);
  return status;
}
