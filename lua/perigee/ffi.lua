--- The C library: finds it, declares it, turns its failures into Lua errors and its handles into objects.
--
-- The declarations are the text of perigee.h that the library itself carries, so the two cannot drift apart. perigee.os and
-- perigee.os.process declare functions of the C library, find.lua two that it needs before, and repl/readline.lua those of GNU
-- readline. No other module declares C functions.
local ffi = require "ffi"
local find = require "perigee.find"

local M = {}

-- ---- Finding the library ----------------------------------------------------------------------------------------------

-- The paths to try, in order. If PERIGEE_LIB is set, only that. Else: the folder of this module, the source tree, the lib folder
-- of the prefix that this module was installed under, the system's folders.
local function candidates()
  local named = os.getenv "PERIGEE_LIB"
  if named and named ~= "" then
    return { named }
  end
  local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
  return {
    here .. "/libperigee.so",
    here .. "/../../build/libperigee.so",
    here .. "/../../../../lib/libperigee.so.0",
    "libperigee.so.0",
  }
end

-- If a file exists and does not load, that is an error: a library found further on might be of another version.
local function load_library()
  local tried = candidates()
  for _, path in ipairs(tried) do
    local ok, library = pcall(ffi.load, path)
    if ok then
      return library, path
    elseif #tried == 1 then
      error(("PERIGEE_LIB is '%s', which cannot be loaded: %s"):format(path, library), 0)
    elseif path:find "/" and find.exists(path) then
      error("cannot load " .. path .. ": " .. library, 0)
    end
  end
  error("libperigee.so was not found; run 'make', or set PERIGEE_LIB to its path. Tried: " .. table.concat(tried, ", "), 0)
end

local C, path = load_library()

-- Declarations outlive this module: when it is loaded again they are still there, and LuaJIT takes a struct only once.
if not pcall(ffi.typeof, "pgee_tensor") then
  ffi.cdef "const char *pgee_header(void);"
  local ok, header = pcall(function() return ffi.string(C.pgee_header()) end)
  if not ok then
    error(path .. " is not Perigee's library: " .. header:gsub("^[^\n]-%.lua:%d+: ", ""), 0)
  end
  ffi.cdef(header)
end

--- The library's namespace: call it as ffi.C.pgee_f(...); single functions are better not cached.
M.C = C
--- The path that the library was loaded by.
M.path = path

-- ---- Failures -----------------------------------------------------------------------------------------------------------

-- The folder of these modules, in two forms: by the path from which this module was loaded, and by the path that find.lua uses.
local OWN = { debug.getinfo(1, "S").source:match "^@(.*/)[^/]*$", find.folder .. "/perigee/" }

--- Whether a function, as debug.getinfo describes it, is of one of these modules.
function M.is_own(info)
  local function plain(source)
    return (source:gsub("^@", ""):gsub("^%./", "")) -- package.path may have both forms
  end
  for _, own in ipairs(OWN) do
    if info.source:sub(1, 1) == "@" and plain(info.source):sub(1, #plain(own)) == plain(own) then
      return true
    end
  end
  return false
end

--- The level to give to Lua's error function, so that the error names the innermost line outside of these modules. The level is 0
-- (the error names no line) if these modules called a function in protected mode on the way, because they catch such an error
-- and extend it or raise it again.
function M.blame()
  for level = 2, math.huge do
    local frame = debug.getinfo(level, "Sf")
    if not frame or frame.func == pcall or frame.func == xpcall then
      return 0
    elseif frame.what ~= "C" and not M.is_own(frame) then
      return level - 1
    end
  end
end

--- Raises an error that names the line outside of these modules that called them (see blame). With level 0 it names no line. If
-- that line is a tail call, `return f(...)`, LuaJIT keeps no frame of it, and the error names the line that called its function.
function M.error(message, level)
  error(message, level == 0 and 0 or M.blame())
end

--- Raises the library's message unless `status` is PGEE_OK. The error names the same line as M.error's.
function M.check(status)
  if status ~= 0 then
    M.error(ffi.string(C.pgee_message()))
  end
end

--- Calls f(...) and returns up to two results. If f raises an error, which names no line, raise makes it name the line that
-- called these modules.
function M.raise(f, ...)
  local ok, result, second = pcall(f, ...)
  if not ok then
    M.error(result)
  end
  return result, second
end

-- ---- Floats ---------------------------------------------------------------------------------------------------------------
--
-- LuaJIT keeps a value's type in the bits of a NaN, and the FFI loads a float or a double unchanged. If a file, a text, C code
-- or another process chose the bits of a NaN, Lua can take the NaN for a table, a string or a function at an address from those
-- bits. A test in Lua comes too late, because the test loads the value first. Therefore Lua reads floats only from an array of
-- doubles that pgee_numbers or Lua itself has filled. The functions below make all such arrays; `make lint` refuses the C types
-- float and double elsewhere (.ci/floats).

--- doubles(n): an array of n doubles from index 0, all zero, for Lua to fill and read. If ffi.copy or a C function other than
-- pgee_numbers wrote to the array, Lua must not read it.
M.doubles = ffi.typeof "double[?]"

--- An array of doubles with `count` floats that lie at `from`. code: C.PGEE_F32, PGEE_F16, PGEE_BF16 or PGEE_F64.
function M.numbers(from, code, count)
  local to = M.doubles(math.max(count, 1))
  if count > 0 then
    M.check(C.pgee_numbers(to, from, code, count))
  end
  return to
end

local one = M.doubles(1)

--- The float at `from`, a number.
function M.number(from, code)
  M.check(C.pgee_numbers(one, from, code, 1))
  return one[0]
end

--- A place for a float or a double that C writes ("float", "double"), and a function that reads it.
function M.out_number(ctype)
  local place, code = ffi.new(ctype .. "[1]"), ctype == "float" and C.PGEE_F32 or C.PGEE_F64
  return place, function()
    return M.number(place, code)
  end
end

-- ---- Handles ------------------------------------------------------------------------------------------------------------

--- A place for a result that C writes: out "pgee_tensor *" holds one, at [0]. A module makes it once and uses it for every call.
function M.out(ctype)
  return ffi.new(ctype .. "[1]")
end

--- Keeps the other arguments alive as long as the cdata `owner` lives, and returns `owner`. owner: a struct or an array of
-- pointers into memory that Lua's collector frees. Without hold they would be freed, because the collector looks for no
-- pointers in a cdata. Each function that fills such a struct calls hold, so that its caller needs to keep only the struct.
local held = setmetatable({}, { __mode = "k" })
function M.hold(owner, ...)
  held[owner] = { ... }
  return owner
end

local int32s, int32_pointer = ffi.typeof "int32_t[?]", ffi.typeof "int32_t *"

-- Whether x is an int32_t array, made as int32_t[?] or as int32_t[n].
local function is_array(x)
  local bytes = type(x) == "cdata" and ffi.sizeof(x)
  return ffi.istype(int32s, x) or bytes and bytes > 0 and bytes % 4 == 0 and ffi.istype(("int32_t[%d]"):format(bytes / 4), x)
end

--- An error unless x is an int32_t array of C with at least `count` elements, or an int32_t pointer, whose size is not known.
function M.check_int32s(x, what, count)
  local array = is_array(x) and ffi.sizeof(x) / 4
  if not (array and array >= count) and not (ffi.istype(int32_pointer, x) and x ~= nil) then
    M.error(("%s is %s, expected an int32_t array of at least %d elements"):format(what, M.describe(x), count))
  end
end

-- The collector sees 8 bytes where the library holds megabytes. Therefore a collection is forced when the library's memory has
-- doubled since its smallest value after the last collection, and is above FLOOR.
local FLOOR = 256 * 2^20
local limit = FLOOR

local function collect_if_large()
  local live = tonumber(C.pgee_live_bytes())
  if live > limit then
    collectgarbage()
    live, limit = tonumber(C.pgee_live_bytes()), math.huge
  end
  limit = math.max(math.min(limit, 2 * live), FLOOR)
end

--- All classes made below, { is =, metatable = }: Lua has no function that returns the class of a cdata.
M.classes = {}

--- Makes a class of objects. Each object owns one handle: it is a struct whose only field is the handle. The collector or release
-- frees the handle.
--   name        how messages name such an object: "tensor"
--   ctype       the C type, "pgee_tensor"
--   free        the C function that frees a handle, "pgee_tensor_free"
--   metatable   for ffi.metatype. __gc is set here; so is __eq (the same handle) if the metatable has none
-- Returns a table of functions.
--   wrap(handle)      an object that owns the handle
--   is(x)             whether x is such an object
--   handle(x, what)   the handle of x. If x is no such object, or was released, that is an error that calls x `what`
--   release(x)        frees the handle at once. A second call does nothing. If x is no such object, that is an error
function M.class(name, ctype, free, metatable)
  local class = {}
  local object, pointer = nil, ffi.typeof(ctype .. " *")

  function class.is(x)
    return ffi.istype(object, x)
  end

  function class.wrap(handle)
    if not ffi.istype(pointer, handle) or handle == nil then
      M.error(("wrap: the handle is %s, expected the one of a %s that the library made"):format(M.describe(handle), name))
    end
    local x = object(handle)
    collect_if_large()
    return x
  end

  function class.handle(x, what)
    if not ffi.istype(object, x) then
      M.error(("%s is %s, expected a %s"):format(what or name, M.describe(x), name))
    elseif x.handle == nil then
      M.error(("%s: this %s was released"):format(what or name, name))
    end
    return x.handle
  end

  function class.release(x)
    if not ffi.istype(object, x) then
      M.error(("release: %s is %s, expected a %s"):format(name, M.describe(x), name))
    end
    local handle = x.handle
    x.handle = nil
    C[free](handle)
  end

  metatable.__gc = class.release
  metatable.__eq = metatable.__eq or function(a, b)
    return ffi.istype(object, a) and ffi.istype(object, b) and a.handle == b.handle
  end
  M.classes[#M.classes + 1] = { is = class.is, metatable = metatable }
  object = ffi.metatype(ffi.typeof("struct { " .. ctype .. " *handle; }"), metatable)
  return class
end

--- Describes x for messages: "nil", "a table", "the string 'abc'", "3", "a tensor F32 [2][3]".
function M.describe(x)
  if type(x) == "string" then
    return #x <= 40 and ("the string '%s'"):format(x) or ("the string '%s…'"):format(x:sub(1, 40))
  elseif type(x) == "number" or type(x) == "boolean" or x == nil then
    return tostring(x)
  elseif type(x) == "userdata" and tostring(x) == "null" then
    return "null" -- of JSON
  end
  return "a " .. (type(x) == "cdata" and tostring(x):match "^[^\n]*" or type(x))
end

return M
