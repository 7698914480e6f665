--- select: chooses the kernel of each INT8 linear, by timing the kernels that give the same bits.
--
-- There are two kernels: "native", Perigee's own for the ISA in force, and "onednn", which is a candidate if pgee_onednn_check
-- finds that it is exact for the weight. A shape gets oneDNN only if oneDNN is at least 3 % faster: the geometric mean over the
-- token counts that are timed. Choices are kept in
-- a file, by CPU, ISA, threads and versions, so a shape is timed once on a machine. It is select.json in the folder
-- PERIGEE_CACHE, else in XDG_CACHE_HOME/perigee, else in ~/.cache/perigee:
--
--   { "format": 2, "machines": { "AMD EPYC, avx512vnni, 2 threads, perigee 0.1.0, oneDNN 3.2.0": {
--       "1152 x 384": { "kernel": "native", "gain": 0.98 } } } }
--
-- gain: how many times as fast oneDNN was. If the file cannot be read or written, that is a warning, and its shapes are timed
-- again. If its path is a pipe, a device or a folder, nothing is read from it or written to it.
local bench = require "perigee.bench"
local cpu = require "perigee.cpu"
local ffi = require "ffi"
local file = require "perigee.base.file"
local find = require "perigee.find"
local json = require "perigee.base.json"
local operator = require "perigee.operator"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local system = require "perigee.os"
local tensor = require "perigee.tensor"
local C, check = pgee.C, pgee.check

local selection = {}

--- oneDNN is chosen if it is at least so many times as fast as the native kernel.
selection.GAIN = 1.03
--- Token counts that are timed.
selection.TOKENS = { 16, 64, 256 }

local FORMAT = 2
local ROUNDS = 7
local WEIGHTS = 8 -- of a shape, gone through in turn: as in a model, they are not in the nearest cache

---- The machine and the file -----------------------------------------------------------------------------------------

--- What a choice depends on besides the shape, as one line: CPU, ISA, threads and versions.
function selection.machine()
  return ("%s, %s, %d threads, perigee %s, oneDNN %s"):format(cpu.name(), cpu.isa_name(), cpu.threads(),
    ffi.string(C.pgee_version()), cpu.onednn() or "none")
end

local function set(name)
  local value = os.getenv(name)
  return value ~= "" and value or nil
end

--- Where choices are kept, or nil if the environment names no place. A relative path begins where the process was when it loaded
-- perigee.ffi.
function selection.path()
  local folder = set "PERIGEE_CACHE" or set "XDG_CACHE_HOME" and set "XDG_CACHE_HOME" .. "/perigee" or
    set "HOME" and set "HOME" .. "/.cache/perigee"
  if folder and folder:sub(1, 1) ~= "/" then
    folder = find.started .. "/" .. folder
  end
  return folder and folder .. "/select.json"
end

-- Reads the choices of a file: { machine = { shape = { kernel =, gain = } } }. Anything that this module would not write is an
-- error.
local function read(path)
  local content = json.object(path)
  if content.format ~= FORMAT or type(content.machines) ~= "table" then
    error(("'%s' has format %s, expected %d"):format(path, json.describe(content.format), FORMAT), 0)
  end
  for machine, shapes in pairs(content.machines) do
    for shape, choice in pairs(type(shapes) == "table" and shapes or { [""] = shapes }) do
      if type(choice) ~= "table" or choice.kernel ~= "native" and choice.kernel ~= "onednn" or type(choice.gain) ~= "number" then
        error(("'%s': the choice for '%s' of '%s' is not one"):format(path, tostring(shape), tostring(machine)), 0)
      end
    end
  end
  return content.machines
end

-- read, or nothing and a warning.
local function recall(path, warn)
  if not path or not json.exists(path) then
    return {}
  end
  local ok, result = pcall(read, path)
  if not ok then
    warn("kernels are selected anew: " .. result)
  end
  return ok and result or {}
end

-- Adds the choices made for a machine to the file. Other processes may have changed the file since this one read it.
local function keep(path, machine, made, warn)
  local machines = recall(path, function() end)
  machines[machine] = machines[machine] or {}
  for shape, choice in pairs(made) do
    machines[machine][shape] = { kernel = choice.kernel, gain = choice.gain }
  end
  system.make_folder(path:match "^(.*)/" or ".")
  local ok, why = file.replace(path, json.canonical { format = FORMAT, machines = machines } .. "\n")
  if not ok then
    warn("the selected kernels are not kept: " .. why)
  end
end

---- Timing ------------------------------------------------------------------------------------------------------------

-- A function that runs one kernel once over all the weights. scales: of each weight.
local function runner(weights, scales, x, y, kernel)
  local all, code = {}, nil
  for i, w in ipairs(weights) do
    code, all[i] = operator.args("linear", { x = x, w = w, scale = scales[i], zero = 128, kernel = kernel, y = y })
  end
  return function()
    for i = 1, #all do
      check(C.pgee_run(code, all[i], nil))
    end
  end
end

--- Returns how many times as fast oneDNN is as the native kernel, on `tokens` rows. weights: packed weights of one shape. The
-- result is the smaller one of two ratios, of the best times and of the median times, so that a disturbance of one measurement
-- rarely makes oneDNN look faster than it is.
function selection.time(weights, tokens)
  local x, y = tensor.new("U8", { tokens, weights[1].K }), tensor.new("F32", { tokens, weights[1].N })
  local to, stride = x:pointer()
  ffi.fill(to, tokens * stride, 0x55)
  local scales = {}
  for i, w in ipairs(weights) do
    scales[i] = w.scales
  end
  local times = bench.time({ runner(weights, scales, x, y, "native"), runner(weights, scales, x, y, "onednn") },
    { rounds = ROUNDS, seconds = 0 })
  for _, t in ipairs { x, y, unpack(scales) } do
    t:release()
  end
  local ours, theirs = times[1], times[2]
  return math.min(ours.min / theirs.min, ours.median / theirs.median)
end

local function fail(name, value, expected)
  error(("select: %s is %s, expected %s"):format(name, pgee.describe(value), expected), 0)
end

local function choose(weights, counts, time)
  local product = 1
  for _, tokens in ipairs(counts) do
    local gain = time(weights, tokens)
    if type(gain) ~= "number" then
      fail("the result of time", gain, "a number")
    end
    product = product * gain
  end
  local gain = product ^ (1 / #counts)
  return { kernel = gain >= selection.GAIN and "onednn" or "native", gain = gain, from = "timing" }
end

---- Choices -----------------------------------------------------------------------------------------------------------

local function shape_of(w)
  return ("%d x %d"):format(w.N, w.K)
end

-- { shape = weights of it }, and the shapes in order.
local function by_shape(weights)
  local groups, order = {}, {}
  for _, w in ipairs(weights) do
    local shape = shape_of(w)
    if not groups[shape] then
      groups[shape] = {}
      order[#order + 1] = shape
    end
    if #groups[shape] < WEIGHTS then
      table.insert(groups[shape], w)
    end
  end
  return groups, order
end

-- The reason why oneDNN is no candidate for a weight; nil if it is one.
local function no_candidate(w)
  return C.pgee_onednn_check(w.handle) ~= C.PGEE_OK and ffi.string(C.pgee_message()) or nil
end

local KNOWN = { known = true, fresh = true, cache = true, tokens = true, warn = true, time = true }

local MOST = 65536 -- tokens that are timed at once

local function check_tokens(counts)
  if type(counts) ~= "table" or #counts == 0 then
    fail("tokens", counts, "a list of token counts")
  end
  options.list(counts, "select: tokens: expected a list of token counts")
  for i, count in ipairs(counts) do
    if type(count) ~= "number" or count % 1 ~= 0 or count < 1 or count > MOST then
      fail(("tokens[%d]"):format(i), count, ("an integer from 1 to %d"):format(MOST))
    end
  end
  return counts
end

--- Chooses for each shape among packed INT8 weights. Options:
--   known   what run returned before: its shapes are not asked about again, if the machine is the same
--   fresh   true: times what the file knows, too
--   cache   the file, false for none. Default: selection.path()
--   tokens  counts to time. Default: selection.TOKENS
--   warn    function(text). Default: a line on standard error
--   time    selection.time, or what stands in for it
-- Returns { machine =, shapes = { ["N x K"] = { kernel =, gain =, from = "timing", "file" or "check", reason = } } }; reason: why
-- there is no choice.
function selection.run(weights, given)
  given = options.check(given, KNOWN, "select")
  local warn = given.warn or function(text)
    io.stderr:write("perigee: ", text, "\n")
  end
  if type(warn) ~= "function" then
    fail("warn", warn, "a function")
  end
  if type(given.time) ~= "nil" and type(given.time) ~= "function" then
    fail("time", given.time, "a function")
  end
  local counts = check_tokens(given.tokens or selection.TOKENS)
  local path = given.cache
  if path == nil then
    path = selection.path()
  elseif path and (type(path) ~= "string" or path == "" or path:find "%z") then
    fail("cache", path, "the path of a file, or false")
  end
  local result = { machine = selection.machine(), shapes = {} }
  if given.known and given.known.machine == result.machine then
    for shape, choice in pairs(given.known.shapes) do
      result.shapes[shape] = choice
    end
  end
  local groups, order = by_shape(weights)
  local filed, made = nil, {}
  for _, shape in ipairs(order) do
    local reason = not result.shapes[shape] and no_candidate(groups[shape][1])
    if reason then
      result.shapes[shape] = { kernel = "native", from = "check", reason = reason }
    elseif not result.shapes[shape] then
      filed = filed or path and not given.fresh and recall(path, warn)[result.machine] or {}
      local old = filed[shape]
      made[shape] = not old and choose(groups[shape], counts, given.time or selection.time) or nil
      result.shapes[shape] = made[shape] or { kernel = old.kernel, gain = old.gain, from = "file" }
    end
  end
  if path and next(made) then
    keep(path, result.machine, made, warn)
  end
  return result
end

--- For a model's select: the same for the INT8 linears of a lowered graph, timed anew unless `given` says otherwise.
function selection.anew(lowered, given)
  local chosen = { fresh = true }
  for key, value in pairs(options.check(given, KNOWN, "select")) do
    chosen[key] = value
  end
  local weights = {}
  for _, linear in ipairs(lowered.linears) do
    weights[#weights + 1] = linear.args.w.dtype == "s8" and linear.args.w or nil
  end
  return selection.run(weights, chosen)
end

--- The packed INT8 weights of a graph.
function selection.weights(graph)
  local list = {}
  for _, node in ipairs(graph.nodes) do
    list[#list + 1] = node.packed
  end
  return list
end

--- The graph with the kernel that run chose on each INT8 linear.
function selection.pass(graph, choices)
  return graph:rewrite(function(_, node)
    if node.packed then
      node.kernel = choices.shapes[shape_of(node.packed)].kernel
    end
  end)
end

return selection
