/* hard_host.c: runs a Lua script as luajit does: hard_host SCRIPT [ARGUMENT...]
 *
 * It is linked with the sanitizers of `make hard`, so that they are in the process before the library is loaded and nothing has to be
 * preloaded into luajit. The state is closed at the end: what no finalizer has freed then is a leak. */
#include <stdio.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

/* busted ends a failed run with error(nil): it has said all. */
static int traceback(lua_State *L) {
  if (lua_isnil(L, 1))
    return 1;
  luaL_traceback(L, L, lua_tostring(L, 1), 1);
  return 1;
}

int main(int argc, char **argv) {
  lua_State *L = luaL_newstate();
  if (argc < 2 || !L)
    return fprintf(stderr, "usage: hard_host SCRIPT [ARGUMENT...]\n"), 2;
  luaL_openlibs(L);
  lua_newtable(L);
  for (int i = 0; i < argc; i++) {
    lua_pushstring(L, argv[i]);
    lua_rawseti(L, -2, i - 1);
  }
  lua_setglobal(L, "arg");
  lua_pushcfunction(L, traceback);
  int failed = luaL_loadfile(L, argv[1]);
  for (int i = 2; !failed && i < argc; i++)
    lua_pushstring(L, argv[i]);
  failed = failed || lua_pcall(L, argc - 2, 0, 1);
  if (failed && !lua_isnil(L, -1))
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
  lua_close(L);
  return failed != 0;
}
