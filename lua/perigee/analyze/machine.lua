--- Machine: what a machine can do at most, described by numbers.
--
-- A machine is a table:
--   name       text
--   isa        name of the best instruction set: "avx2", "avx512vnni", "amx" ...
--   cores      number of cores in use
--   peak       operations a second of all cores: { f32 =, int8 =, bf16 = }; a multiply-add is two operations. bf16 is nil if
--              there are no BF16 instructions
--   bandwidth  bytes a second that all cores together can read: { l2 =, l3 =, memory = }; l2 or l3 is nil if it is not known
--   cache      bytes: { l2 = of each core, l3 = of all cores together }; nil if unknown
--   efficiency the part of the roofline's speed that linears reach, by type: { int8 =, f32 =, bf16 = }; nil if unknown
--   hertz      the clock
--   barrier    seconds that a barrier of all cores takes; nil: not counted
--   measured   true if the figures were measured, false if they come from a description
--
-- A description is a Lua file that returns the numbers of a specification: clocks, operations and bytes per cycle, memory
-- channels. machine.describe computes the machine from them. machines/*.lua are examples. measure.lua measures this machine.
local find = require "perigee.find"
local options = require "perigee.options"
local pgee = require "perigee.ffi"

local machine = {}

--- The names of the descriptions that come along, beside "this".
machine.NAMES = { "icelake-8380", "granite-rapids-6980p" }

--- The levels of memory, the nearest one first.
machine.LEVELS = { "l2", "l3", "memory" }

local BYTES_OF_TRANSFER = 8 -- a memory channel is 64 bits wide

---- Checking ------------------------------------------------------------------------------------------------------------

-- By field: { minimum, maximum } of a number, true of a text, or the same of the fields of a table. A field that ends in ? may
-- be nil.
local FIELDS = {
  name = true, isa = true, cores = { 1, 2 ^ 20 },
  clock = { base = { 1e6, 1e11 }, ["turbo?"] = { 1e6, 1e11 } },
  per_cycle = { f32 = { 1, 1e6 }, int8 = { 1, 1e6 }, ["bf16?"] = { 1, 1e6 } },
  cache = { l2 = { 1, 1e12 }, l3 = { 1, 1e12 } },
  bytes_per_cycle = { l2 = { 1e-3, 1e6 }, l3 = { 1e-3, 1e6 } },
  memory = { channels = { 1, 1024 }, transfers = { 1e6, 1e12 }, ["share?"] = { 1e-3, 1 } },
  ["barrier?"] = { 0, 1 },
  ["efficiency?"] = { ["int8?"] = { 1e-3, 1 }, ["f32?"] = { 1e-3, 1 }, ["bf16?"] = { 1e-3, 1 } },
}

local function check(value, fields, what)
  if fields == true then
    return type(value) == "string" or error(("%s is %s, expected a text"):format(what, pgee.describe(value)), 0)
  elseif fields[1] then
    return options.given(value, what, "a number") and options.number(value, fields[1], fields[2], what)
  elseif type(value) ~= "table" then
    error(("%s is %s, expected a table"):format(what, pgee.describe(value)), 0)
  end
  local known = {}
  for key, inner in pairs(fields) do
    local name = key:match "^(.-)%??$"
    known[name] = true
    if value[name] ~= nil or name == key then
      check(value[name], inner, ("%s.%s"):format(what, name))
    end
  end
  options.check(value, known, what)
end

---- Descriptions ----------------------------------------------------------------------------------------------------------

--- The machine that a description describes. clock: "base" (the default: the clock that the maker guarantees) or "turbo".
-- what: the name of the description in errors.
function machine.describe(description, clock, what)
  check(description, FIELDS, what or "the machine's description")
  local hertz = description.clock[clock or "base"] or description.clock.base
  local all, peak = description.cores * hertz, {}
  for precision, operations in pairs(description.per_cycle) do
    peak[precision] = operations * all
  end
  local memory = description.memory
  return {
    name = description.name, isa = description.isa, cores = description.cores, peak = peak, measured = false,
    cache = { l2 = description.cache.l2, l3 = description.cache.l3 }, efficiency = description.efficiency, hertz = hertz,
    barrier = description.barrier,
    bandwidth = {
      l2 = description.bytes_per_cycle.l2 * all, l3 = description.bytes_per_cycle.l3 * all,
      memory = memory.channels * memory.transfers * BYTES_OF_TRANSFER * (memory.share or 0.8),
    },
  }
end

-- The table that a file returns. The file sees no globals: a description only has numbers.
local function read(path)
  local chunk, why = loadfile(path, "t")
  if not chunk then
    error(("the machine's description cannot be read: %s"):format(why), 0)
  end
  local ok, value = pcall(setfenv(chunk, {}))
  if not ok then
    error(("the machine's description %s fails: %s"):format(path, value), 0)
  end
  return value
end

--- The machine of a name in machine.NAMES, or of a description's file, whose name ends in .lua. clock: as for describe.
function machine.load(name, clock)
  for _, known in ipairs(machine.NAMES) do
    if name == known then
      return machine.describe(read(find.path("perigee.analyze.machines." .. known)), clock, known)
    end
  end
  if type(name) ~= "string" or not name:find "%.lua$" then
    error(("the machine is %s, expected this, %s, or a file whose name ends in .lua"):format(pgee.describe(name),
      table.concat(machine.NAMES, ", ")), 0)
  end
  return machine.describe(read(name), clock, name)
end

--- The part of a machine that one process has, if `instances` processes work side by side and each has `cores` of the cores.
-- The peaks and the bandwidths of the caches are those of its cores. Each process gets an equal part of the memory's bandwidth.
-- The
-- L3 cache counts as a whole for each process, because the processes share the weights.
function machine.part(m, cores, instances)
  local share, part = cores / m.cores, {}
  for key, value in pairs(m) do
    part[key] = value
  end
  part.cores, part.peak, part.bandwidth = cores, {}, {}
  part.barrier = m.barrier and m.cores > 1 and m.barrier * math.log(cores) / math.log(m.cores) or nil
  for precision, operations in pairs(m.peak) do
    part.peak[precision] = operations * share
  end
  for level, bytes in pairs(m.bandwidth) do
    part.bandwidth[level] = level == "memory" and bytes / instances or bytes * share
  end
  return part
end

return machine
