--- Tensors: arrays of one element type with one to four dimensions. Their memory lies in the library, outside Lua's collector.
--
--   local tensor = require "perigee.tensor"
--   local t = tensor.from { { 1, 2, 3 }, { 4, 5, 6 } }       -- F32 [2][3]
--   t[2][3]  --> 6         t.shape --> { 2, 3 }     t.dtype --> "F32"     #t --> 2
--   t[1] = { 7, 8, 9 }     t:rows(1, 1)             print(t)
--
-- Indices start at 1, as always in Lua. A row, and rows(a, b), are views: they share memory with the tensor and keep it alive.
-- Types are spelled as in safetensors: F32 F16 BF16 F64 I64 I32 I8 U8 BOOL. Lua reads elements of BOOL as booleans, elements of
-- I64 beyond 2^53 as int64_t, and all others as numbers. A value that the type cannot hold is rounded (floats) or refused
-- (integers).
local ffi = require "ffi"
local element_types = require "perigee.tensor.types"
local pgee = require "perigee.ffi"
local print_tensor = require "perigee.tensor.text"
local shapes = require "perigee.tensor.shape"
local C, check, error = pgee.C, pgee.check, pgee.error
local types = element_types.types

local M = {}
local methods = {}
local class
local out = pgee.out "pgee_tensor *"
local out_db, db = pgee.out_number "double"

--- The library's numbers for the types' names, and code(name), an error for another name.
M.codes, M.code = element_types.codes, element_types.code

-- ---- Making ------------------------------------------------------------------------------------------------------------

local function new(dtype, shape)
  local code = element_types.code(dtype)
  if type(shape) == "number" then
    shape = { shape }
  elseif type(shape) ~= "table" then
    error("shape is " .. pgee.describe(shape) .. ", expected a number or a list of numbers")
  end
  for i = 1, #shape do
    local n = shape[i]
    if type(n) ~= "number" or n % 1 ~= 0 or n < 0 or n >= 2^53 then
      error(("dimension %d of the shape is %s, expected an integer of at least 0"):format(i, pgee.describe(n)))
    end
  end
  check(C.pgee_tensor_new(out, code, #shape, ffi.new("int64_t[?]", math.max(#shape, 1), shape)))
  return class.wrap(out[0])
end

--- tensor.new("F32", { 2, 3 }): zeros.
function M.new(dtype, shape)
  return (new(dtype, shape))
end

-- The place of an element for messages, "[2][3]". at.skipped: how many rows of the tensor stand before row at[1] = 1.
local function place(at)
  return ("[%d]"):format(at[1] + (at.skipped or 0)) .. (at[2] and "[" .. table.concat(at, "][", 2) .. "]" or "")
end

-- Appends the elements of nested lists to `flat`, in the form in which they are stored. Returns what is wrong with them, or nil.
local function flatten(flat, values, kind, shape, at)
  local depth = #at + 1
  if class.is(values) then
    values = values:totable()
  end
  if depth > #shape then
    local stored = kind.set(values)
    flat[#flat + 1] = stored
    return stored == nil and ("%s is %s, and %s takes %s"):format(place(at), pgee.describe(values), kind.name, kind.expected)
  elseif type(values) ~= "table" or #values ~= shape[depth] then
    local came = type(values) == "table" and "a list of " .. #values or pgee.describe(values)
    return ("%s is %s, expected a list of %d"):format(depth > 1 and place(at) or "the value", came, shape[depth])
  end
  for i = 1, shape[depth] do
    at[depth] = i
    local wrong = flatten(flat, values[i], kind, shape, at)
    if wrong then
      return wrong
    end
    at[depth] = nil
  end
end

-- Fills h from nested lists. If an element is wrong, nothing is written. skipped, for messages: how many rows of the whole tensor
-- stand before h.
local function assign(h, values, skipped)
  local kind, shape, flat = types[C.pgee_tensor_dtype(h)], shapes.of(h), {}
  local wrong = flatten(flat, values, kind, shape, { skipped = skipped })
  if wrong then
    error(wrong)
  end
  local data, stride = ffi.cast(kind.written or kind.pointer, C.pgee_tensor_data(h)), tonumber(C.pgee_tensor_stride(h))
  local width = #flat / math.max(shape[1], 1)
  for i = 0, #flat - 1 do
    data[math.floor(i / width) * stride + i % width] = flat[i + 1]
  end
end

--- tensor.from { 1, 2 } or { { 1, 2 }, { 3, 4 } }, up to four levels deep: F32, or tensor.from({ 1, 2 }, "U8").
function M.from(values, dtype)
  if type(values) ~= "table" then
    error("values is " .. pgee.describe(values) .. ", expected a list of numbers or of lists")
  end
  local shape, inner = {}, values
  repeat
    shape[#shape + 1] = #inner
    inner = inner[1]
    if #shape == 4 and type(inner) == "table" then
      error("values is a list of lists more than four levels deep, expected at most four")
    end
  until type(inner) ~= "table"
  local t = new(dtype or "F32", shape)
  assign(t.handle, values)
  return t
end

--- For modules: an object that owns the handle that a function of the library has just written.
function M.wrap(handle)
  return class.wrap(handle)
end

--- Whether x is a tensor.
function M.is(x)
  return class.is(x)
end

--- For modules: the handle of x, or an error that names `what`.
function M.handle(x, what)
  return (class.handle(x, what))
end

--- For modules: the handle of x; nil if x is nil.
function M.optional(x, what)
  return x ~= nil and class.handle(x, what) or nil
end

-- ---- Reading and writing -----------------------------------------------------------------------------------------------

local function index_check(h, i)
  local rows = tonumber(C.pgee_tensor_dim(h, 0))
  if i % 1 ~= 0 or i < 1 or i > rows then
    error(("index %s is outside 1 to %d"):format(i, rows))
  end
end

local function element(h, i)
  local t = types[C.pgee_tensor_dtype(h)]
  local at = ffi.cast(t.pointer, C.pgee_tensor_data(h)) + (i - 1)
  return t.float and pgee.number(at, t.code) or t.get(at[0])
end

local function view_row(h, i)
  check(C.pgee_tensor_row(out, h, i - 1))
  return class.wrap(out[0])
end

local properties = {
  shape = shapes.of,
  dtype = function(h) return types[C.pgee_tensor_dtype(h)].name end,
}

local function index(t, key)
  if type(key) == "number" then
    local h = class.handle(t, "tensor")
    index_check(h, key)
    if C.pgee_tensor_ndim(h) == 1 then
      return element(h, key)
    end
    return (view_row(h, key))
  elseif properties[key] then
    return properties[key](class.handle(t, "tensor"))
  end
  return methods[key]
end

local function writable(h)
  if C.pgee_tensor_writable(h) == 0 then
    error("this tensor is part of a file and cannot be written; t:copy() can")
  end
end

--- t:set(values): all elements, from nested lists or a tensor of t's shape, or one number for all.
function methods.set(t, values)
  local h = class.handle(t, "tensor")
  writable(h)
  if type(values) == "table" or class.is(values) then
    assign(h, values)
  elseif C.pgee_tensor_ndim(h) > 1 then
    for i = 1, #t do
      pgee.raise(methods.set, view_row(h, i), values)
    end
  else
    local kind = types[C.pgee_tensor_dtype(h)]
    local stored = kind.set(values)
    if stored == nil then
      error(("%s takes %s, not %s"):format(kind.name, kind.expected, pgee.describe(values)))
    end
    local data = ffi.cast(kind.written or kind.pointer, C.pgee_tensor_data(h))
    for i = 0, #t - 1 do
      data[i] = stored
    end
  end
  return t
end

local function newindex(t, key, value)
  local h = class.handle(t, "tensor")
  if type(key) ~= "number" then
    error(("a tensor has no field %s that could be set"):format(pgee.describe(key)))
  end
  index_check(h, key)
  writable(h)
  check(C.pgee_tensor_rows(out, h, key - 1, key))
  local row = class.wrap(out[0])
  assign(row.handle, { value }, key - 1)
  row:release()
end

--- The elements as nested lists.
function methods.totable(t)
  class.handle(t, "tensor")
  local list = {}
  for i = 1, #t do
    local v = t[i]
    list[i] = class.is(v) and v:totable() or v
  end
  return list
end

--- Rows first to last, both included: a view.
function methods.rows(t, first, last)
  local h = class.handle(t, "tensor")
  local rows = tonumber(C.pgee_tensor_dim(h, 0))
  last = last or rows
  if type(first) ~= "number" or type(last) ~= "number" or first % 1 ~= 0 or last % 1 ~= 0 or first < 1 or last > rows
    or first > last + 1 then
    error(("rows: the first is %s and the last %s, expected integers from 1 to %d"):format(pgee.describe(first),
      pgee.describe(last), rows))
  end
  check(C.pgee_tensor_rows(out, h, first - 1, last))
  return class.wrap(out[0])
end

--- A copy of the same type.
function methods.copy(t)
  local h = class.handle(t, "tensor")
  local copy = new(types[C.pgee_tensor_dtype(h)].name, shapes.of(h))
  local from, stride = t:pointer()
  local to, copy_stride = copy:pointer()
  local width = shapes.width(h)
  for i = 0, #t - 1 do
    ffi.copy(to + i * copy_stride, from + i * stride, width * C.pgee_dtype_bytes(C.pgee_tensor_dtype(h)))
  end
  return copy
end

--- A copy in memory for which Linux is asked to use huge pages.
function methods.huge(t)
  check(C.pgee_tensor_huge(out, class.handle(t, "tensor")))
  return class.wrap(out[0])
end

--- A dense F32 copy, exact for F16 and BF16.
function methods.f32(t)
  check(C.pgee_tensor_f32(out, class.handle(t, "tensor")))
  return class.wrap(out[0])
end

--- The elements of a float tensor as numbers: a copy, an FFI array of doubles from 0, row after row without gaps. A NaN is
-- canonical: the bits of one in a file or from C never reach Lua (see perigee.ffi).
--   rows, width   the shape that the tensor must have; nil: any. Nothing checks the indices of an FFI array. Therefore a caller
--                 that reads a fixed number of elements states the shape here
function methods.numbers(t, rows, width)
  local h = class.handle(t, "tensor")
  local kind, of_t, of_row = types[C.pgee_tensor_dtype(h)], tonumber(C.pgee_tensor_dim(h, 0)), shapes.width(h)
  if not kind.float then
    error(("numbers: this tensor is %s, expected F32, F16, BF16 or F64"):format(kind.name))
  elseif (rows or of_t) ~= of_t or (width or of_row) ~= of_row then
    pgee.error(("numbers: this tensor is %s, expected [%d][%d]"):format(shapes.title(h), rows or of_t, width or of_row))
  end
  local numbers = pgee.numbers(C.pgee_tensor_data(h), kind.code, of_t * of_row) -- floats have no gaps between rows
  return numbers
end

--- Writes all elements of an F32 tensor from an array of doubles in the order that numbers gives. Returns the tensor.
function methods.put(t, numbers)
  local h = class.handle(t, "tensor")
  writable(h)
  local count = #t * shapes.width(h)
  if t.dtype ~= "F32" then
    error(("put: this tensor is %s, expected F32"):format(t.dtype))
  elseif not ffi.istype(pgee.doubles, numbers) or ffi.sizeof(numbers) < 8 * count then
    error(("put: numbers is %s, expected an array of at least %d doubles"):format(pgee.describe(numbers), count))
  end
  local data = ffi.cast(types.F32.written, C.pgee_tensor_data(h))
  for i = 0, count - 1 do
    data[i] = numbers[i]
  end
  return t
end

--- Returns a pointer to the first element, for FFI code that copies it or passes it on, and the stride, which is the distance
-- of two rows in elements. The pointer has the C type of the tensor's type. For floats it points to their bits, as uint16_t,
-- uint32_t or uint64_t, because LuaJIT must not load a NaN whose bits come from elsewhere (t:numbers() reads floats). The
-- pointer is valid as long as the tensor.
function methods.pointer(t)
  local h = class.handle(t, "tensor")
  return ffi.cast(types[C.pgee_tensor_dtype(h)].pointer, C.pgee_tensor_data(h)), tonumber(C.pgee_tensor_stride(h))
end

--- Frees the memory at once, unless a view still needs it. Every later use of t is an error.
function methods.release(t)
  class.release(t)
end

-- ---- Comparing and printing --------------------------------------------------------------------------------------------

--- Whether type, shape and every bit are equal.
function methods.equals(t, other)
  return C.pgee_tensor_equal(class.handle(t, "tensor"), class.handle(other, "other")) == 1
end

--- The signal-to-quantization-noise ratio of `test` against this F32 tensor in dB; math.huge if they are equal.
function methods.sqnr(t, test)
  check(C.pgee_sqnr(out_db, class.handle(t, "tensor"), class.handle(test, "test")))
  return (db())
end

--- The place of the first NaN or infinity of a float tensor, in row-major order: the row and the column, both from 1; of a
-- vector, the index; nil if there is none. With more than two dimensions, the "column" counts through the whole of t[row].
function methods.first_nonfinite(t)
  local h = class.handle(t, "tensor")
  local at = tonumber(C.pgee_tensor_nonfinite(h))
  if at < 0 then
    return nil
  elseif C.pgee_tensor_ndim(h) == 1 then
    return at + 1
  end
  local width = shapes.width(h)
  return math.floor(at / width) + 1, at % width + 1
end

class = pgee.class("tensor", "pgee_tensor", "pgee_tensor_free", {
  __index = index,
  __newindex = newindex,
  __names = function() return { methods, properties } end,
  __len = function(t) return tonumber(C.pgee_tensor_dim(class.handle(t, "tensor"), 0)) end,
  __tostring = function(t) return print_tensor(t) end, -- a function of this file: the prompt finds the class's description by it
})

return M
