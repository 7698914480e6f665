--- GNU readline: its declarations, and the library. It has no header that LuaJIT could read.
local ffi = require "ffi"

ffi.cdef [[
  extern const char *rl_readline_name, *rl_completer_word_break_characters, *rl_basic_quote_characters;
  extern char *rl_line_buffer;
  extern int rl_change_environment, rl_point, rl_end, rl_completion_append_character, rl_attempted_completion_over;
  extern char **(*rl_attempted_completion_function)(const char *word, int first, int last);
  int rl_initialize(void);
  void rl_callback_handler_install(const char *prompt, void (*take)(char *line));
  void rl_callback_read_char(void);
  void rl_callback_handler_remove(void);
  void rl_callback_sigcleanup(void);
  void rl_free_line_state(void);
  void rl_reset_screen_size(void);
  void rl_redisplay(void);
  int rl_on_new_line(void);
  char *rl_variable_value(const char *name);
  char *rl_filename_completion_function(const char *text, int again);
  void using_history(void);
  void add_history(const char *line);
  void stifle_history(int lines);
  int read_history(const char *path);
  int append_history(int lines, const char *path);
  int history_truncate_file(const char *path, int lines);
]]

--- The library's namespace; nil if readline is not installed.
return function()
  for _, name in ipairs { "libreadline.so.8", "readline" } do
    local ok, library = pcall(ffi.load, name)
    if ok then
      return library
    end
  end
end
