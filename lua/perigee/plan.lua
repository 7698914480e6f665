--- Plans: a list of operators and the buffers between them; workspaces: the memory that one caller runs a plan in.
--
--   local plan = require "perigee.plan"
--   local p = plan.new()
--   local hidden = p:buffer("F32", "tokens", 384)
--   local vector = p:buffer("F32", "sequences", 384)
--   p:embed { word = W, position = P, type = Y, y = hidden }
--   p:pool { x = hidden, mode = "mean", y = vector }
--   p:seal { vector }
--   local ws = p:workspace { tokens = 512, sequences = 8, longest = 128 }
--   ws:run(plan.batch { { 101, 7592, 102 }, { 101, 102 } })
--   print(ws:output(vector))                -- F32 [2][384], a view valid until the next run
--
-- A sealed plan is immutable. The plan holds its weights, so the caller may release the handles that it gave. One workspace
-- serves one caller at a time. Callers with workspaces of their own can run at the same time, unless their plans share an
-- observer.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local operator = require "perigee.operator"
local options = require "perigee.options"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local out = pgee.out "pgee_plan *"
local out_workspace = pgee.out "pgee_workspace *"
local out_tensor = pgee.out "pgee_tensor *"
local out_bytes = pgee.out "int64_t"

local function integer(value, what, min)
  if type(value) ~= "number" or value % 1 ~= 0 or value < min or value >= 2^31 then
    error(("%s is %s, expected an integer of at least %d"):format(what, pgee.describe(value), min))
  end
  return value
end

-- ---- Batches -------------------------------------------------------------------------------------------------------------

local Batch = operator.batch
Batch.__index = Batch
Batch.__tostring = function(b)
  return ("batch of %d sequences, %d tokens, the longest %d"):format(b.B, b.T, b.S)
end

local int32s, batch_struct = ffi.typeof "int32_t[?]", ffi.typeof "pgee_batch"

-- Token ids or types, [T], from one list for each sequence.
local function flatten(lists, starts, T, what)
  local flat = int32s(math.max(T, 1))
  for b, list in ipairs(lists) do
    for i = 1, #list do
      if type(list[i]) ~= "number" or list[i] % 1 ~= 0 or math.abs(list[i]) >= 2^31 then
        error(("%s[%d][%d] is %s, expected an integer"):format(what, b, i, pgee.describe(list[i])))
      end
      flat[starts[b - 1] + i - 1] = list[i]
    end
  end
  return flat
end

-- Fills the batch's field c, the struct that C takes.
local function with_struct(batch)
  local c = batch_struct(batch.T, batch.B, batch.ids, batch.types, batch.starts, batch.R, batch.rows)
  batch.c = pgee.hold(c, batch.ids, batch.types, batch.starts, batch.rows)
  return setmetatable(batch, Batch)
end

-- Returns the marked tokens as numbers of tokens of the batch, int32_t [R], and R. marks: their places in each sequence, from 1.
local function marked_rows(marks, starts)
  local rows, R = {}, 0
  for b, places in ipairs(marks) do
    for i, place in ipairs(type(places) == "table" and places or {}) do
      local after = i > 1 and places[i - 1] or 0
      if type(place) ~= "number" or place % 1 ~= 0 or place <= after or place > starts[b] - starts[b - 1] then
        error(("marks[%d][%d] is %s, expected ascending places in a sequence of %d tokens"):format(b, i, pgee.describe(place),
          starts[b] - starts[b - 1]))
      end
      R = R + 1
      rows[R] = starts[b - 1] + place - 1
    end
  end
  return int32s(math.max(R, 1), rows), R
end

--- A packed batch from a list of sequences, each a list of token ids, and their types (the same shape, or nil: all 0). marks: for
-- each sequence a list of the places, counted from 1, of the tokens that are marked, or nil: none.
-- Fields: T tokens, B sequences, S the longest, R marked tokens; c, the struct that C takes.
function M.batch(ids, types, marks)
  types, marks = types ~= nil and types or nil, marks ~= nil and marks or nil -- a null pointer is none, too
  if type(ids) ~= "table" or (types ~= nil and (type(types) ~= "table" or #types ~= #ids)) then
    error(("a batch of %s and %s, expected a list of sequences and as many of types, or nil"):format(pgee.describe(ids),
      pgee.describe(types)))
  end
  if marks ~= nil and (type(marks) ~= "table" or #marks ~= #ids) then
    error(("marks is %s, expected a list of places for each sequence"):format(pgee.describe(marks)))
  end
  local starts = int32s(#ids + 1)
  local S = 0
  for b, list in ipairs(ids) do
    if type(list) ~= "table" or (types and (type(types[b]) ~= "table" or #types[b] ~= #list)) then
      error(("sequence %d of the batch is %s, expected a list of ids, and types of the same number or nil"):format(b,
        pgee.describe(list)))
    end
    starts[b] = starts[b - 1] + #list
    S = math.max(S, #list)
  end
  local T = starts[#ids]
  local batch = { T = T, B = #ids, S = S, starts = starts }
  batch.ids = flatten(ids, starts, T, "ids")
  batch.types = types and flatten(types, starts, T, "types")
  batch.rows, batch.R = marked_rows(marks or {}, starts)
  return with_struct(batch)
end

--- For modules: the same over arrays of C, which the caller keeps alive: starts int32_t [B + 1], ids and types int32_t [T], types
-- may be nil, and the R marked tokens, int32_t [R], or nil.
function M.packed_batch(B, starts, ids, types, R, rows)
  integer(B, "packed_batch: B", 0)
  R = integer(R or 0, "packed_batch: R", 0)
  pgee.check_int32s(starts, "packed_batch: starts", B + 1)
  local batch = {
    T = starts[B], B = B, S = 0, starts = starts, ids = ids, types = types ~= nil and types or nil, R = R,
    rows = R > 0 and rows or nil,
  }
  for b = 1, B do
    batch.S = math.max(batch.S, starts[b] - starts[b - 1])
  end
  pgee.check_int32s(ids, "packed_batch: ids", batch.T)
  if types ~= nil then
    pgee.check_int32s(types, "packed_batch: types", batch.T)
  end
  if R > 0 then
    pgee.check_int32s(rows, "packed_batch: rows", R)
  end
  return with_struct(batch)
end

local function batch_of(batch)
  if getmetatable(batch) ~= Batch then
    error(("batch is %s, expected one that plan.batch made"):format(pgee.describe(batch)))
  end
  return batch.c
end

-- ---- Buffers -------------------------------------------------------------------------------------------------------------

local buffer = operator.buffer
buffer.__index = buffer
buffer.__tostring = function(b)
  return ("buffer %s [%s]%s"):format(b.dtype, b.rows, b.width > 0 and ("[%d]"):format(b.width) or "")
end

local ROWS = { tokens = C.PGEE_TOKENS, sequences = C.PGEE_SEQUENCES, marked = C.PGEE_MARKED }

-- ---- Plans -----------------------------------------------------------------------------------------------------------------

local Plan = {}
local plans

--- An empty plan.
function M.new()
  check(C.pgee_plan_new(out))
  return plans.wrap(out[0])
end

--- A buffer of the plan: dtype as tensors spell it; rows "tokens", "sequences" or "marked"; width values a row, 0 (default) for
-- a vector of one value a row. It is a name for memory that workspaces have. Fields: dtype, rows, width.
function Plan.buffer(p, dtype, rows, width)
  local h = plans.handle(p, "plan")
  local code = tensor.code(dtype)
  local kind = ROWS[options.choice(rows, ROWS, "buffer: rows")]
  width = integer(width or 0, "buffer: width", 0)
  check(C.pgee_plan_buffer(h, out_tensor, code, kind, width))
  return setmetatable({ handle = out_tensor[0], plan = p, dtype = dtype, rows = rows, width = width }, buffer)
end

--- p:linear { x = ..., ... }, p:norm { ... } and so on: appends one operator. Fields are those of pgee_linear_args and so on in
-- perigee.h; what is an enum there has a name here: activation = "gelu", kernel = "native", mode = "mean",
-- quantize = { mode = "static", ... }. Returns the plan.
for _, name in pairs(operator.names) do
  Plan[name] = function(p, given)
    local h = plans.handle(p, "plan")
    local code, args = operator.args(name, given)
    check(C.pgee_plan_push(h, code, args))
    return p
  end
end

local function buffer_handle(b, what)
  if getmetatable(b) ~= buffer then
    error(("%s is %s, expected a buffer of the plan"):format(what, pgee.describe(b)))
  end
  return b.handle
end

--- Ends the building of the plan. Takes a list of its outputs, the buffers that can be read after a run. Other buffers share
-- memory when they are no longer used. Returns the plan.
function Plan.seal(p, outputs)
  local h = plans.handle(p, "plan")
  if type(outputs) ~= "table" then
    error(("seal: outputs is %s, expected a list of buffers"):format(pgee.describe(outputs)))
  end
  local array = ffi.new("const pgee_tensor *[?]", math.max(#outputs, 1))
  for i, b in ipairs(outputs) do
    array[i - 1] = buffer_handle(b, "output " .. i)
  end
  check(C.pgee_plan_seal(h, pgee.hold(array, outputs), #outputs))
  return p
end

local CAPACITY = { tokens = true, sequences = true, longest = true, marked = true }

-- tokens, sequences, longest, marked of a capacity table.
local function capacity(given)
  given = options.check(given, CAPACITY, "capacity")
  return integer(given.tokens, "tokens", 0), integer(given.sequences, "sequences", 0),
    integer(given.longest or given.tokens, "longest", 0), integer(given.marked or 0, "marked", 0)
end

--- Bytes of a workspace of this capacity: { tokens =, sequences =, longest = (tokens), marked = (0) }.
function Plan.bytes(p, given)
  local h = plans.handle(p, "plan")
  local T, B, S, R = capacity(given)
  check(C.pgee_plan_bytes(h, T, B, S, R, out_bytes))
  return tonumber(out_bytes[0])
end

--- The operators' names, in order.
function Plan.steps(p)
  local h = plans.handle(p, "plan")
  local names = {}
  for i = 1, tonumber(C.pgee_plan_steps(h)) do
    names[i] = operator.names[C.pgee_plan_op(h, i - 1)]
  end
  return names
end

--- Multiply-adds of each of `threads` threads for a batch, a list.
function Plan.work(p, batch, threads)
  local h, c = plans.handle(p, "plan"), batch_of(batch)
  local work, list = ffi.new("int64_t[?]", integer(threads, "threads", 1)), {}
  check(C.pgee_plan_work(h, c, threads, work))
  for i = 1, threads do
    list[i] = tonumber(work[i - 1])
  end
  return list
end

--- Frees the plan at once, unless a workspace still holds it. Its buffers cannot be used afterwards.
function Plan.release(p)
  plans.release(p)
end

-- ---- Workspaces ------------------------------------------------------------------------------------------------------------

local Workspace = {}
local workspaces

--- Memory to run the plan in, for batches of up to this capacity: { tokens =, sequences =, longest = (tokens), marked = (0) }.
-- The number of threads is the one in force now; a later run uses fewer if fewer are in force then.
function Plan.workspace(p, given)
  local h = plans.handle(p, "plan")
  local T, B, S, R = capacity(given)
  check(C.pgee_workspace_new(out_workspace, h, T, B, S, R))
  return workspaces.wrap(out_workspace[0])
end

--- Runs the plan on a batch. Outputs of the run before are overwritten. Returns the workspace.
function Workspace.run(w, batch)
  check(C.pgee_workspace_run(workspaces.handle(w, "workspace"), batch_of(batch)))
  return w
end

--- Runs the plan on a batch, as run does. Returns a list of the seconds that each step took.
function Workspace.profile(w, batch)
  local h = workspaces.handle(w, "workspace")
  local steps = tonumber(C.pgee_workspace_steps(h))
  local seconds, list = pgee.doubles(math.max(steps, 1)), {}
  check(C.pgee_workspace_profile(h, batch_of(batch), seconds))
  seconds = pgee.numbers(seconds, C.PGEE_F64, steps)
  for i = 1, steps do
    list[i] = seconds[i - 1]
  end
  return list
end

--- The number, from 1, of the first step whose result has a NaN or an infinity when the plan runs on a batch; nil: none has.
-- Outputs of the run before are lost.
function Workspace.first_nonfinite(w, batch)
  check(C.pgee_workspace_nonfinite(workspaces.handle(w, "workspace"), batch_of(batch), out_bytes))
  local step = tonumber(out_bytes[0]) + 1
  return step > 0 and step or nil
end

--- An output of the last run: a view of one row for each token, sequence or marked token, valid until the next run.
function Workspace.output(w, b)
  check(C.pgee_workspace_output(out_tensor, workspaces.handle(w, "workspace"), buffer_handle(b, "output")))
  return tensor.wrap(out_tensor[0])
end

--- The number of bytes that the workspace holds.
function Workspace.bytes(w)
  return tonumber(C.pgee_workspace_bytes(workspaces.handle(w, "workspace")))
end

--- Frees the workspace at once. Views of its outputs keep the memory until they are freed, too.
function Workspace.release(w)
  workspaces.release(w)
end

plans = pgee.class("plan", "pgee_plan", "pgee_plan_free", {
  __index = Plan,
  __tostring = function(p)
    return p.handle == nil and "plan (released)" or ("plan of %d steps"):format(tonumber(C.pgee_plan_steps(p.handle)))
  end,
})

workspaces = pgee.class("workspace", "pgee_workspace", "pgee_workspace_free", {
  __index = Workspace,
  __tostring = function(w)
    return w.handle == nil and "workspace (released)" or ("workspace of %d bytes"):format(w:bytes())
  end,
})

return M
