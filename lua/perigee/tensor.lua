--- Tensors: arrays of one type with one to four dimensions, whose memory is the library's, outside Lua's collector.
--
--   local tensor = require "perigee.tensor"
--   local t = tensor.from { { 1, 2, 3 }, { 4, 5, 6 } }       -- F32 [2][3]
--   t[2][3]  --> 6         t.shape --> { 2, 3 }     t.dtype --> "F32"     #t --> 2
--   t[1] = { 7, 8, 9 }     t:rows(1, 1)             print(t)
--
-- Indices start at 1, as always in Lua. A row, and rows(a, b), are views: they share memory and keep it alive.
-- Types are spelled as in safetensors: F32 F16 BF16 F64 I64 I32 I8 U8 BOOL. Elements of I64 beyond 2^53 are read as int64_t,
-- those of BOOL as booleans, all others as numbers; a value that the type cannot hold is rounded (floats) or refused (integers).
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local methods = {}
local class
local out = pgee.out "pgee_tensor *"
local out_db, db = pgee.out_number "double"

-- ---- Element types -------------------------------------------------------------------------------------------------------

-- The bits of v as a 16-bit float of `fraction` fraction bits, whose exponent has this bias. To the nearest, ties to even; a
-- carry out of the fraction is a carry into the exponent.
local function narrow(v, fraction, bias)
  local one, infinite = 2 ^ fraction, (2 * bias + 1) * 2 ^ fraction
  if v ~= v then
    return infinite + one / 2
  end
  local sign = (v < 0 or 1 / v < 0) and 0x8000 or 0
  local a = math.abs(v)
  if a == math.huge then
    return sign + infinite
  end
  local _, exponent = math.frexp(a)
  exponent = a == 0 and 2 - bias or math.max(exponent, 2 - bias)
  local units = math.ldexp(a, fraction + 1 - exponent)
  local bits = (units + 2^52) - 2^52 + (exponent + bias - 2) * one
  return sign + math.min(bits, infinite)
end

-- The pointers in `written` are for writing floats alone (perigee.ffi says why). Callers get pointers to the bits of floats.
local function float(bits, written, stored)
  return {
    float = true, pointer = ffi.typeof(bits), written = ffi.typeof(written or bits),
    set = function(v) return type(v) == "number" and (stored and stored(v) or v) or nil end,
    expected = "a number",
  }
end

local function float16(fraction, bias)
  return float("uint16_t *", nil, function(v) return narrow(v, fraction, bias) end)
end

local function integer(pointer, low, high)
  return {
    pointer = ffi.typeof(pointer),
    get = function(v) return v end,
    set = function(v) return type(v) == "number" and v % 1 == 0 and v >= low and v <= high and v or nil end,
    expected = ("an integer from %d to %d"):format(low, high),
  }
end

local int64 = ffi.typeof "int64_t"
local types = {
  F32 = float("uint32_t *", "float *"),
  F16 = float16(10, 15),
  BF16 = float16(7, 127),
  U8 = integer("uint8_t *", 0, 255),
  I8 = integer("int8_t *", -128, 127),
  I32 = integer("int32_t *", -2^31, 2^31 - 1),
  I64 = {
    pointer = ffi.typeof "int64_t *",
    get = function(v) return v >= -2^53 and v <= 2^53 and tonumber(v) or v end,
    set = function(v)
      return (ffi.istype(int64, v) or type(v) == "number" and v % 1 == 0 and v >= -2^63 and v < 2^63) and v or nil
    end,
    expected = "a 64-bit integer",
  },
  F64 = float("uint64_t *", "double *"),
  BOOL = {
    pointer = ffi.typeof "uint8_t *",
    get = function(v) return v ~= 0 end,
    set = function(v) return type(v) == "boolean" and (v and 1 or 0) or nil end,
    expected = "a boolean",
  },
}

--- The library's numbers for the types' names.
M.codes = {}
local codes = M.codes
for code = 0, C.PGEE_DTYPES - 1 do
  local name = ffi.string(C.pgee_dtype_name(code))
  codes[name] = code
  types[code] = assert(types[name], name)
  types[code].name, types[code].code = name, code
end

--- The library's number for a type's name; an error for another name.
function M.code(dtype)
  return codes[dtype] or error(("the tensor type is %s, expected 'F32', 'F16', 'BF16', 'F64', 'I64', 'I32', 'I8', 'U8' or 'BOOL'")
    :format(pgee.describe(dtype)))
end

-- ---- Making ------------------------------------------------------------------------------------------------------------

local function shape_of(h)
  local shape = {}
  for i = 1, C.pgee_tensor_ndim(h) do
    shape[i] = tonumber(C.pgee_tensor_dim(h, i - 1))
  end
  return shape
end

-- Elements in a row.
local function width_of(h)
  local width = 1
  for i = 1, C.pgee_tensor_ndim(h) - 1 do
    width = width * tonumber(C.pgee_tensor_dim(h, i))
  end
  return width
end

--- "F32 [2][3]"
local function title(h)
  return types[C.pgee_tensor_dtype(h)].name .. " [" .. table.concat(shape_of(h), "][") .. "]"
end

local function new(dtype, shape)
  local code = M.code(dtype)
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

-- The place of an element for messages, "[2][3]". at.skipped: rows before the first.
local function place(at)
  return ("[%d]"):format(at[1] + (at.skipped or 0)) .. (at[2] and "[" .. table.concat(at, "][", 2) .. "]" or "")
end

-- Appends the elements of nested lists to `flat`, as they are stored. Returns what is wrong with them, or nil.
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

-- Fills h from nested lists, all or nothing. `skipped` is for messages: the rows of the whole tensor before h.
local function assign(h, values, skipped)
  local kind, shape, flat = types[C.pgee_tensor_dtype(h)], shape_of(h), {}
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

--- The same, with nil for nil.
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
  shape = shape_of,
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
  local copy = new(types[C.pgee_tensor_dtype(h)].name, shape_of(h))
  local from, stride = t:pointer()
  local to, copy_stride = copy:pointer()
  local width = width_of(h)
  for i = 0, #t - 1 do
    ffi.copy(to + i * copy_stride, from + i * stride, width * C.pgee_dtype_bytes(C.pgee_tensor_dtype(h)))
  end
  return copy
end

--- A copy in memory that asks the kernel for huge pages.
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
  local kind, of_t, of_row = types[C.pgee_tensor_dtype(h)], tonumber(C.pgee_tensor_dim(h, 0)), width_of(h)
  if not kind.float then
    error(("numbers: this tensor is %s, expected F32, F16, BF16 or F64"):format(kind.name))
  elseif (rows or of_t) ~= of_t or (width or of_row) ~= of_row then
    pgee.error(("numbers: this tensor is %s, expected [%d][%d]"):format(title(h), rows or of_t, width or of_row))
  end
  local numbers = pgee.numbers(C.pgee_tensor_data(h), kind.code, of_t * of_row) -- floats have no gaps between rows
  return numbers
end

--- Writes all elements of an F32 tensor from an array of doubles in the order that numbers gives. Returns the tensor.
function methods.put(t, numbers)
  local h = class.handle(t, "tensor")
  writable(h)
  local count = #t * width_of(h)
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

--- Frees the memory at once unless a view still needs it. What is done with t afterwards is an error.
function methods.release(t)
  class.release(t)
end

-- ---- Comparing and printing --------------------------------------------------------------------------------------------

--- Whether type, shape and every bit are equal.
function methods.equals(t, other)
  return C.pgee_tensor_equal(class.handle(t, "tensor"), class.handle(other, "other")) == 1
end

--- Signal-to-quantization-noise ratio in dB of `test` against this F32 tensor: math.huge if they are equal.
function methods.sqnr(t, test)
  check(C.pgee_sqnr(out_db, class.handle(t, "tensor"), class.handle(test, "test")))
  return (db())
end

--- The place of the first NaN or infinity of a float tensor, in row-major order: row and column, or the index of a vector; nil if
-- there is none. (Of more dimensions: the first index and the place within.)
function methods.first_nonfinite(t)
  local h = class.handle(t, "tensor")
  local at = tonumber(C.pgee_tensor_nonfinite(h))
  if at < 0 then
    return nil
  elseif C.pgee_tensor_ndim(h) == 1 then
    return at + 1
  end
  local width = width_of(h)
  return math.floor(at / width) + 1, at % width + 1
end

local ROWS, COLUMNS = 6, 8 -- that are printed

local function cells_of(t, count)
  local cells = {}
  for i = 1, math.min(#t, count) do
    local v = t[i]
    cells[i] = type(v) == "number" and ("%.4g"):format(v) or tostring(v):gsub("LL$", "")
  end
  return cells
end

-- One line for each row that is shown, all cells as wide as the widest.
local function lines_of(t)
  if #t == 0 or width_of(t.handle) == 0 then
    return {}
  end
  local rows = C.pgee_tensor_ndim(t.handle) == 1 and { cells_of(t, COLUMNS) } or {}
  local columns = rows[1] and #t
  for i = 1, rows[1] and 0 or math.min(#t, ROWS) do
    rows[i] = cells_of(t[i], COLUMNS)
    columns = #t[i]
  end
  local wide = 0
  for _, cells in ipairs(rows) do
    for _, cell in ipairs(cells) do
      wide = math.max(wide, #cell)
    end
  end
  local lines = {}
  for i, cells in ipairs(rows) do
    for j, cell in ipairs(cells) do
      cells[j] = (" "):rep(wide - #cell) .. cell
    end
    lines[i] = "  " .. table.concat(cells, "  ") .. (columns > COLUMNS and "  …" or "")
  end
  return lines
end

local function print_tensor(t)
  local h = t.handle
  if h == nil then
    return "tensor (released)"
  end
  local lines = { "tensor " .. title(h) }
  if C.pgee_tensor_data(h) == nil then
    lines[1] = lines[1] .. " (a plan's buffer)"
  elseif C.pgee_tensor_ndim(h) <= 2 then
    for _, line in ipairs(lines_of(t)) do
      lines[#lines + 1] = line
    end
    if C.pgee_tensor_ndim(h) == 2 and #t > ROWS then
      lines[#lines + 1] = "  …"
    end
  end
  return table.concat(lines, "\n")
end

class = pgee.class("tensor", "pgee_tensor", "pgee_tensor_free", {
  __index = index,
  __newindex = newindex,
  __names = function() return { methods, properties } end,
  __len = function(t) return tonumber(C.pgee_tensor_dim(class.handle(t, "tensor"), 0)) end,
  __tostring = print_tensor,
})

return M
