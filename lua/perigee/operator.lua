--- Operators: from a Lua table to the args struct that C takes, for plans and for single calls alike.
--
-- One row of `operators` for each operator of perigee.h, with the struct's fields in its order and spelling. A field's kind says
-- what Lua value it takes:
--   tensor    a tensor, or a plan's buffer         packed   a packed weight        observer   an observer
--   number    a number                             integer  a whole number         flag       true or false
--   quantize  a table of the quantizer's fields
--   a table   of names: one of them
-- Fields that are nil stay 0 or NULL. C checks whether a field may be absent, and its messages name the field.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local packed = require "perigee.packed"
local observer = require "perigee.observer"
local options = require "perigee.options"
local C, error = pgee.C, pgee.error

local M = {}

local ACTIVATIONS = {
  identity = C.PGEE_IDENTITY, gelu = C.PGEE_GELU, gelu_tanh = C.PGEE_GELU_TANH, relu = C.PGEE_RELU, tanh = C.PGEE_TANH,
  quick_gelu = C.PGEE_QUICK_GELU, silu = C.PGEE_SILU, gelu_rounded = C.PGEE_GELU_ROUNDED,
  gelu_tanh_rounded = C.PGEE_GELU_TANH_ROUNDED,
}
local KERNELS = { native = C.PGEE_NATIVE, onednn = C.PGEE_ONEDNN }
local MODES = { static = C.PGEE_STATIC, token = C.PGEE_DYNAMIC_TOKEN, sequence = C.PGEE_DYNAMIC_SEQUENCE }
local POOLS = {
  first = C.PGEE_POOL_FIRST, mean = C.PGEE_POOL_MEAN, max = C.PGEE_POOL_MAX, mean_sqrt = C.PGEE_POOL_MEAN_SQRT,
  last = C.PGEE_POOL_LAST, weighted = C.PGEE_POOL_WEIGHTED,
}

--- The known names of activations, of modes of pooling and of modes of quantizers.
M.ACTIVATIONS, M.POOLS, M.MODES = ACTIVATIONS, POOLS, MODES

local QUERIES = { all = C.PGEE_QUERIES_ALL, first = C.PGEE_QUERIES_FIRST, marked = C.PGEE_QUERIES_MARKED }
local GATHERS = { first = C.PGEE_GATHER_FIRST, marked = C.PGEE_GATHER_MARKED }

--- mode: "static" (zero, m, b or nil), "token" or "sequence" (row_scale, row_zero are written). See pgee_quantizer.
local QUANTIZER = {
  mode = MODES, symmetric = "flag", zero = "integer", m = "tensor", b = "tensor", q = "tensor",
  row_scale = "tensor", row_zero = "tensor",
}

local operators = {
  embed = {
    code = C.PGEE_EMBED, args = ffi.typeof "pgee_embed_args",
    fields = {
      word = "tensor", position = "tensor", type = "tensor", position_offset = "integer", y = "tensor", skip_padding = "flag",
      word_scales = "tensor", position_scales = "tensor", type_scales = "tensor",
    },
  },
  linear = {
    code = C.PGEE_LINEAR, args = ffi.typeof "pgee_linear_args",
    fields = {
      x = "tensor", w = "packed", bias = "tensor", scale = "tensor", zero = "integer", row_scale = "tensor", row_zero = "tensor",
      activation = ACTIVATIONS, residual = "tensor", kernel = KERNELS, y = "tensor", quantize = "quantize",
    },
  },
  norm = {
    code = C.PGEE_NORM, args = ffi.typeof "pgee_norm_args",
    fields = {
      x = "tensor", residual = "tensor", gamma = "tensor", beta = "tensor", eps = "number", y = "tensor", quantize = "quantize",
    },
  },
  quantize = {
    code = C.PGEE_QUANTIZE, args = ffi.typeof "pgee_quantize_args", fields = { x = "tensor", quantize = "quantize" },
  },
  attention = {
    code = C.PGEE_ATTENTION, args = ffi.typeof "pgee_attention_args",
    fields = {
      qkv = "tensor", heads = "integer", scale = "number", qk_scale = "tensor", v_scale = "tensor", queries = QUERIES,
      y = "tensor", quantize = "quantize", bias = "tensor",
    },
  },
  pool = {
    code = C.PGEE_POOL, args = ffi.typeof "pgee_pool_args", fields = { x = "tensor", mode = POOLS, y = "tensor" },
  },
  unit = {
    code = C.PGEE_UNIT, args = ffi.typeof "pgee_unit_args", fields = { x = "tensor", y = "tensor" },
  },
  gather = {
    code = C.PGEE_GATHER, args = ffi.typeof "pgee_gather_args", fields = { x = "tensor", mode = GATHERS, y = "tensor" },
  },
  observe = {
    code = C.PGEE_OBSERVE, args = ffi.typeof "pgee_observe_args", fields = { x = "tensor", observer = "observer" },
  },
}

--- Names of the operators by C's number.
M.names = {}
for name, operator in pairs(operators) do
  M.names[operator.code] = name
end

-- The metatables of the plan's buffers and batches, so that this module need not require perigee.plan.
M.buffer, M.batch = {}, {}

local fill

local kinds = {
  tensor = function(value, what)
    if getmetatable(value) ~= M.buffer then
      return (tensor.handle(value, what))
    elseif value.plan.handle == nil then
      error(what .. " is a buffer of a plan that was released")
    end
    return value.handle
  end,
  packed = function(value, what)
    return (packed.handle(value, what))
  end,
  observer = function(value, what)
    return (observer.handle(value, what))
  end,
  number = function(value, what)
    if type(value) ~= "number" then
      error(("%s is %s, expected a number"):format(what, pgee.describe(value)))
    end
    return value
  end,
  integer = function(value, what)
    if type(value) ~= "number" or value % 1 ~= 0 or math.abs(value) >= 2 ^ 31 then -- beyond it, C would see another number
      error(("%s is %s, expected an integer"):format(what, pgee.describe(value)))
    end
    return value
  end,
  flag = function(value, what)
    if type(value) ~= "boolean" then
      error(("%s is %s, expected true or false"):format(what, pgee.describe(value)))
    end
    return value and 1 or 0
  end,
}

local function convert(kind, value, what)
  if type(kind) == "table" then
    return kind[options.choice(value, kind, what)]
  end
  return (kinds[kind](value, what))
end

function fill(struct, fields, given, what, held)
  given = options.check(given, fields, what)
  for name, value in pairs(given) do
    local kind = fields[name]
    if kind == "quantize" then
      fill(struct.quantize, QUANTIZER, value, what .. ": quantize", held)
    else
      struct[name] = convert(kind, value, what .. ": " .. name)
      held[#held + 1] = value
    end
  end
end

--- Returns the operator's number and its args struct, which keeps the values of `given` alive. Errors name the operator and the
-- field. They blame the line that perigee.ffi's check would blame.
function M.args(name, given)
  local operator = operators[name]
  local args = operator.args()
  local held = {}
  fill(args, operator.fields, given, name, held)
  return operator.code, pgee.hold(args, held)
end

--- Runs one operator now, on all threads. `batch` as perigee.plan's batch makes it, or nil.
function M.run(name, given, batch)
  local code, args = M.args(name, given)
  if type(batch) ~= "nil" and getmetatable(batch) ~= M.batch then
    error(("%s: batch is %s, expected one that plan.batch made"):format(name, pgee.describe(batch)))
  end
  pgee.check(C.pgee_run(code, args, batch and batch.c))
end

return M
