--- Exact: digests of the bits of quantized models (statistics, packed weights, hidden states), and a comparison with digests.txt.
--
--   luajit spec/golden/exact.lua            compares with spec/golden/digests.txt; exits with 1 if one differs
--   luajit spec/golden/exact.lua --write    writes digests.txt
--
-- Run it from the top folder. The digests are the same with every compiler, optimization, ISA and number of threads. PERIGEE_LIB,
-- PERIGEE_ISA and PERIGEE_THREADS choose the library and how it runs. As a module, it has the functions that specs use.
if not package.path:find("./lua/?.lua", 1, true) then
  package.path = "./lua/?.lua;./lua/?/init.lua;./?.lua;" .. package.path
end
local options = require "perigee.options"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local digest = require "spec.support.digest"
local models = require "spec.support.models"
local C, check = pgee.C, pgee.check

local exact = { path = "spec/golden/digests.txt" }
local bytes_out = pgee.out "pgee_tensor *"

--- The settings whose bits are compared, by name. Each lists all of its values, so that a new default does not change a digest.
exact.modes = {
  ["static"] = { activations = "static", symmetric = false, alpha = 0.7, attention = "f32" },
  ["static-symmetric"] = { activations = "static", symmetric = true, alpha = 0.4, attention = "f32" },
  ["dynamic"] = { activations = "dynamic", symmetric = true, per = "token", alpha = 0.5, attention = "f32" },
  ["dynamic-asymmetric"] = { activations = "dynamic", symmetric = false, per = "token", alpha = false, attention = "f32" },
  ["dynamic-sequence"] = { activations = "dynamic", symmetric = true, per = "sequence", alpha = 0.5, attention = "f32" },
  ["static-attention"] = { activations = "static", symmetric = false, alpha = 0.7, attention = "int8" },
  ["dynamic-attention"] = { activations = "dynamic", symmetric = true, per = "token", alpha = 0.5, attention = "int8" },
  ["static-bf16"] = {
    activations = "static", symmetric = false, alpha = 0.7, attention = "f32", floats = "bf16", skip = { "*.0.*out*" },
  },
  ["static-shift"] = { activations = "static", symmetric = false, alpha = 0.7, attention = "f32", shift = true },
  ["static-shift-attention"] = { activations = "static", symmetric = true, alpha = false, attention = "int8", shift = true },
}
for _, mode in pairs(exact.modes) do
  mode.weights, mode.range, mode.tables = "row", "minmax", "f32"
  mode.shift = mode.shift or false
end
for _, tables in ipairs { "f16", "int8" } do
  local mode = {}
  for key, value in pairs(exact.modes.dynamic) do
    mode[key] = value
  end
  mode.tables = tables
  exact.modes["tables-" .. tables] = mode
end
exact.mode_names = {
  "static", "static-symmetric", "dynamic", "dynamic-asymmetric", "dynamic-sequence", "static-attention", "dynamic-attention",
  "static-bf16", "tables-f16", "tables-int8", "static-shift", "static-shift-attention",
}

--- Returns the inputs on which a model calibrates, and those that it answers. `name` is that of spec.support.models, or "minilm".
function exact.inputs(name, model)
  if name == "minilm" then
    local texts = models.texts("recipes/data/calibration.txt", 24, 60)
    return { unpack(texts, 1, 16) }, { unpack(texts, 17, 24) }
  end
  local longest = math.min(40, model.positions)
  return models.random_inputs(12, longest, model.vocabulary, 1), models.random_inputs(9, longest, model.vocabulary, 2)
end

--- Loads and calibrates. Returns { model =, stats =, inputs = }.
function exact.open(name)
  local model = perigee.load(name == "minilm" and models.demo() or models.path(name))
  local calibration, inputs = exact.inputs(name, model)
  return { name = name, model = model, stats = model:calibrate(calibration, { progress = false, rows = 128 }), inputs = inputs }
end

--- Returns a quantized model of what open() returned.
function exact.quantize(opened, mode)
  local settings = { stats = opened.stats }
  for key, value in pairs(exact.modes[mode]) do
    settings[key] = value
  end
  return opened.model:quantize(settings)
end

--- Returns the digest of the statistics: of sites, then of attentions, each in the order of names.
function exact.statistics(stats)
  local d = digest.new()
  for _, name in ipairs(options.names(stats.sites)) do
    local seen = stats.sites[name]
    d:string(name):tensor(seen.min):tensor(seen.max):tensor(seen.sample)
  end
  for _, name in ipairs(options.names(stats.attention)) do
    local seen = stats.attention[name]
    d:string(name):tensor(seen.min):tensor(seen.max)
  end
  return d:text()
end

--- Returns the digest of what quantization made: packed bytes, scales, sums, multipliers, zero points, and embedding tables
-- unless they are the checkpoint's.
function exact.packed(q)
  local d = digest.new()
  local function add(t)
    if t then
      d:tensor(t)
    end
  end
  for _, linear in ipairs(q:runner("hidden").lowered.linears) do
    local args = linear.args
    if args.w.dtype ~= "f32" then
      check(C.pgee_packed_read(require("perigee.packed").handle(args.w), nil, nil, bytes_out))
      local bytes = tensor.wrap(bytes_out[0])
      add(bytes)
      bytes:release()
    end
    if args.w.dtype == "s8" then
      add(args.w.scales)
      add(args.w.sums)
      add(args.scale)
      add(linear.quantize and linear.quantize.m)
      add(linear.quantize and linear.quantize.b)
      add(linear.node.shift and linear.args.bias)
      d:string(tostring(linear.quantize and linear.quantize.zero))
    end
  end
  for _, embed in ipairs(q.settings.tables ~= "f32" and q:runner("hidden").lowered.embeds or {}) do
    for _, key in ipairs { "word", "word_scales", "position", "position_scales", "type", "type_scales" } do
      add(embed[key])
    end
  end
  for _, node in ipairs(q:runner("hidden").lowered.attentions) do
    if node.precision == "int8" then
      d:tensor(node.scales.m):tensor(node.scales.qk):tensor(node.scales.v)
    end
  end
  return d:text()
end

--- Returns the digest of the last hidden states of inputs that run as one batch.
function exact.hidden(q, inputs)
  local hidden = q:hidden(inputs)
  local text = digest.new():tensor(hidden):text()
  hidden:release()
  return text
end

--- Returns all digests of a model as a list of "NAME MODE WHAT DIGEST". `modes` defaults to all.
function exact.digests(name, modes)
  local opened, lines = exact.open(name), {}
  local function add(...)
    lines[#lines + 1] = table.concat({ name, ... }, " ")
  end
  add("fp32", "statistics", exact.statistics(opened.stats))
  for _, mode in ipairs(modes or exact.mode_names) do
    local q = exact.quantize(opened, mode)
    add(mode, "packed", exact.packed(q))
    add(mode, "hidden", exact.hidden(q, opened.inputs))
    q:release()
  end
  opened.stats:release()
  opened.model:release()
  return lines
end

--- Returns digests.txt as { ["NAME MODE WHAT"] = digest }.
function exact.golden()
  local golden = {}
  for line in io.lines(exact.path) do
    local key, value = line:match "^(%S+ %S+ %S+) (%x+)$"
    if key then
      golden[key] = value
    end
  end
  return golden
end

--- Compares a model's digests with the golden ones. Returns the differences, a list of lines.
function exact.differences(name, golden, modes)
  local list = {}
  for _, line in ipairs(exact.digests(name, modes)) do
    local key, value = line:match "^(.*) (%x+)$"
    if golden[key] ~= value then
      list[#list + 1] = ("%s is %s, expected %s"):format(key, value, golden[key] or "a line in " .. exact.path)
    end
  end
  return list
end

local function names()
  local list = { unpack(models.small) }
  local demo, why = models.demo()
  if demo then
    list[#list + 1] = "minilm"
  else
    print("minilm skipped: " .. why)
  end
  return list
end

local function write()
  assert(models.demo())
  local file = assert(io.open(exact.path, "w"))
  file:write "# Digests of the bits of quantized models, by spec/golden/exact.lua --write: model, settings, what, digest.\n"
  for _, name in ipairs(names()) do
    file:write(table.concat(exact.digests(name), "\n"), "\n")
  end
  file:close()
end

local function main()
  if arg[1] == "--write" then
    return write()
  end
  local golden, wrong, count = exact.golden(), 0, 0
  for _, name in ipairs(names()) do
    for _, line in ipairs(exact.differences(name, golden)) do
      print(line)
      wrong = wrong + 1
    end
    count = count + 1 + 2 * #exact.mode_names
  end
  print(("%s: %d digests, %d differ"):format(pgee.path, count, wrong))
  os.exit(wrong == 0 and 0 or 1)
end

if arg and arg[0] and arg[0]:match "exact%.lua$" then
  main()
end
return exact
