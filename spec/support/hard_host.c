/* hard_host.c: a luajit with the sanitizers of `make hard` linked in, so that they are in the process before the library is
 * loaded and nothing has to be preloaded. It takes what the specs use:
 *
 *   hard_host [-e CHUNK] [SCRIPT [ARGUMENT...]]     SCRIPT may be -, the standard input
 *
 * The state is always closed at the end, by os.exit too: what no finalizer has freed then is a leak. */
#include <stdio.h>
#include <string.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

static const char closing_exit[] = "local exit = os.exit; function os.exit(code) exit(code, true) end";

/* busted ends a failed run with error(nil): it has said all. */
static int traceback(lua_State *L) {
  if (lua_isnil(L, 1))
    return 1;
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

/* Calls the chunk on top of the stack with `count` strings, unless it did not load. */
static int call(lua_State *L, int failed, char **strings, int count) {
  for (int i = 0; !failed && i < count; i++)
    lua_pushstring(L, strings[i]);
  return failed || lua_pcall(L, count, 0, 1);
}

static int run(lua_State *L, int argc, char **argv) {
  int script = argc > 2 && strcmp(argv[1], "-e") == 0 ? 3 : 1;
  lua_newtable(L);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - script);
  }
  lua_setglobal(L, "arg");
  if (script == 3 && call(L, luaL_loadstring(L, argv[2]), NULL, 0))
    return 1;
  if (script >= argc)
    return 0;
  const char *path = strcmp(argv[script], "-") == 0 ? NULL : argv[script];
  return call(L, luaL_loadfile(L, path), argv + script + 1, argc - script - 1);
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (!L)
    return 1;
  luaL_openlibs(L);
  lua_pushcfunction(L, traceback);
  int failed = call(L, luaL_loadstring(L, closing_exit), NULL, 0) || run(L, argc, argv);
  if (failed && !lua_isnil(L, -1))
    fprintf(stderr, "luajit: %s\n", lua_tostring(L, -1));
  lua_close(L);
  return failed;
}
