--- Sensitivity: what each site and each attention costs when it is quantized. It prints itself as a table and changes nothing.
--
--   local s = q:sensitivity()
--   s.items[i]       { name =, kind = "site" or "attention", linears =, sqnr =, alone =, without =, gain = }, the worst first
--   s.int8           the SQNR of the last hidden states of q itself
--   s.texts, s.tokens   the texts that were judged
--
-- All figures are in dB. sqnr is the SQNR of the site or attention by itself, which needs no run. alone is the SQNR of the last
-- hidden states if only this site is INT8. without is that SQNR if q is as it is, except that this site is FP32. gain is
-- without - s.int8. without and gain are nil where q has FP32 anyway.
--
-- The FP32 model and q are run once and their hidden states after each layer are kept. A change then runs only from its own
-- layer on (steps.lua). Every result is kept with q by a key that has all that it depends on. So after an interrupt the next
-- call goes on where this one stopped.
local attention = require "perigee.graph.passes.attention"
local inputs = require "perigee.run.inputs"
local lower = require "perigee.graph.passes.lower"
local measure = require "perigee.quantize.measure"
local options = require "perigee.options"
local place = require "perigee.graph.passes.place"
local progress = require "perigee.show.progress"
local quantize = require "perigee.graph.passes.quantize"
local registry = require "perigee.quantize.settings.registry"
local settings = require "perigee.quantize.settings"
local settle = require "perigee.graph.passes.settle"
local sites = require "perigee.graph.passes.sites"
local smooth = require "perigee.graph.passes.smooth"
local steps = require "perigee.tune.steps"
local text_table = require "perigee.show.table"

local Sensitivity = {}
Sensitivity.__index = Sensitivity

---- Options -----------------------------------------------------------------------------------------------------------

local KNOWN = { tokens = true, without = true, progress = true }

-- By default the texts have at most MOST tokens, and fewer, at least LEAST, if all runs together would take more than WORK
-- multiply-adds.
local MOST, LEAST, WORK = 512, 128, 2.5e12

local function default_tokens(graph, items)
  local each = 0
  for _, node in ipairs(graph.nodes) do
    each = each + (node.op == "linear" and node.width * node.inputs[1].width or 0)
  end
  return math.max(LEAST, math.min(MOST, math.floor(WORK / (each * items * 0.5))))
end

-- The first of the kept texts, at most so many tokens but at least one text.
local function first_texts(model, kept, most)
  local batch, tokens = inputs.new(model), 0
  for i, input in ipairs(kept.inputs) do
    tokens = tokens + #input.ids
    if i > 1 and tokens > most then
      break
    end
    batch:add(input)
  end
  return batch
end

---- Graphs ------------------------------------------------------------------------------------------------------------

-- The graph with the outputs of all layers, in which the sites and attentions of the set `int8`, by name, are INT8.
local function with_int8(q, int8, memo)
  local graph = q.model:graph("layers"):rewrite(function(_, node)
    if node.op == "linear" then
      node.precision = node.site and int8[node.site.name] and "int8" or "f32"
    end
  end)
  graph = settle.pass(graph, q.stats, q.settings, memo)
  graph = quantize.pass(smooth.pass(graph, q.stats, memo), q.stats, memo)
  return graph:rewrite(function(_, node)
    if node.op == "attention" then
      node.precision = int8[node.name] and "int8" or "f32"
      if int8[node.name] then
        node.scales = memo:get("scales of " .. node.name, function()
          return attention.scales(q.stats:attention_of(node), node.heads)
        end)
        node.inputs[1].quantize = attention.quantizer(node.scales)
      end
    end
  end)
end

-- The steps of such a graph, and its outputs by name. Steps have the field `of`: the name of their site or attention.
local function lowered(q, int8, memo)
  local list, node_now = steps.new(), nil
  local result = lower.pass(with_int8(q, int8, memo), {
    plan = setmetatable({}, { __index = function(_, key)
      return function(_, ...)
        local made = list[key](list, ...)
        local step = list.list[#list.list]
        if step and not step.of and node_now then
          step.of = node_now.op == "attention" and node_now.name or node_now.site and node_now.site.name or ""
        end
        return made
      end
    end }),
    memo = memo, visit = function(node) node_now = node end,
  })
  return list, result.outputs
end

-- The last layer's output: "layer 12".
local function last_of(outputs)
  local n = 0
  while outputs["layer " .. n + 1] do
    n = n + 1
  end
  return "layer " .. n
end

-- Runs a graph whole. Returns what the last step of each layer writes, { ["layer 3"] = { y =, ["quantize.q"] =, ... }, ... }, and
-- the name of the last layer.
local function baseline(q, int8, batch, memo)
  local list, outputs = lowered(q, int8, memo)
  local wanted, places = {}, {}
  for name, buffer in pairs(outputs) do
    for path, sibling in pairs(list:siblings(buffer)) do
      wanted[#wanted + 1] = sibling
      places[sibling] = { name, path }
    end
  end
  local base = {}
  for buffer, t in pairs(list:run(wanted, batch, {})) do
    local at = places[buffer]
    base[at[1]] = base[at[1]] or {}
    base[at[1]][at[2]] = t
  end
  return base, last_of(outputs)
end

local function release(base)
  for _, fields in pairs(base) do
    for _, t in pairs(fields) do
      t:release()
    end
  end
end

-- The SQNR of the last hidden states against `reference` if the graph has these INT8 sites. base: the layers of a run that
-- differs in the site or attention `name` only.
local function judge(q, int8, name, base, reference, last, batch, memo)
  local list, outputs = lowered(q, int8, memo)
  local have, known = {}, {}
  for layer, fields in pairs(base) do
    local buffer = outputs[layer]
    if not list:depends(buffer, function(step) return step.of == name end, known) then
      for path, sibling in pairs(list:siblings(buffer)) do
        have[sibling] = fields[path]
      end
    end
  end
  local wanted = outputs[last]
  local t = list:run({ wanted }, batch, have)[wanted]
  local db = reference:sqnr(t)
  t:release()
  return db
end

---- The run -----------------------------------------------------------------------------------------------------------

local sensitivity = {}

-- The sites and attentions of a model in order: { { name =, kind =, site = or node = }... }.
local function items_of(q)
  local list = {}
  for _, site in ipairs(measure.sites(q)) do
    list[#list + 1] = { name = site.name, kind = "site", site = site, linears = site.linears }
  end
  for _, node in ipairs(sites.attentions(q.model:graph "hidden")) do
    list[#list + 1] = { name = node.name, kind = "attention", node = node }
  end
  return list
end
sensitivity.items = items_of

--- The names of the sites and attentions that are INT8 by the settings of q: a set.
function sensitivity.int8(q)
  local set = {}
  local graph = attention.pass(place(q.model:graph "hidden", q.settings), q.stats, q.settings, q.memo:aside())
  for _, node in ipairs(graph.nodes) do
    if node.precision == "int8" then
      set[node.op == "attention" and node.name or node.site.name] = true
    end
  end
  return set
end

-- A key that has all that `alone` of an item depends on.
local function key_of(q, item, tokens)
  local own = item.site and registry.key("sqnr", settings.of(q.settings, item.site)) or ""
  return ("alone %d %s %s"):format(tokens, item.name, own)
end

local function of_itself(q, item)
  if item.site then
    return measure.site(q, item.site, { settings.at(q.settings, { item.site }, { skip = false }) })[1]
  end
  return q.stats:attention_of(item.node).sqnr
end

-- Measures all items. c: { q =, batch =, tokens =, int8 =, without =, tell =, memo = }.
local function measure_all(c, items)
  local q, known, done = c.q, c.q.measured, 0
  local total = #items * (c.without and 2 or 1)
  local fp32, int8, last
  local function value(key, make)
    if known[key] == nil then
      known[key] = make()
    end
    done = done + 1
    c.tell(math.min(done, total), total)
    return known[key]
  end
  local function reference()
    if not fp32 then
      fp32, last = baseline(q, {}, c.batch, c.memo)
      c.bases[#c.bases + 1] = fp32
    end
    return fp32[last].y
  end
  local function quantized()
    if not int8 then
      int8 = baseline(q, c.int8, c.batch, c.memo)
      c.bases[#c.bases + 1] = int8
    end
    return int8
  end
  local whole = ("whole %d %s"):format(c.tokens, tostring(q.settings))
  if c.without and known[whole] == nil then
    known[whole] = reference():sqnr(quantized()[last].y)
  end
  for _, item in ipairs(items) do
    item.sqnr = of_itself(q, item)
    item.alone = value(key_of(q, item, c.tokens), function()
      local wanted = reference()
      return judge(q, { [item.name] = true }, item.name, fp32, wanted, last, c.batch, c.memo)
    end)
    if c.without and c.int8[item.name] then
      item.without = value(("without %d %s %s"):format(c.tokens, item.name, tostring(q.settings)), function()
        local rest = {}
        for name in pairs(c.int8) do
          rest[name] = name ~= item.name or nil
        end
        local wanted, base = reference(), quantized()
        return judge(q, rest, item.name, base, wanted, last, c.batch, c.memo)
      end)
      item.gain = item.without - known[whole]
    elseif c.without then
      done = done + 1
    end
  end
  return known[whole]
end

-- The worst first: the lowest SQNR alone. Equal ones stay in the order of the model.
local function ordered(items)
  for i, item in ipairs(items) do
    item.place, item.site, item.node = i, nil, nil
  end
  table.sort(items, function(a, b) return a.alone < b.alone or a.alone == b.alone and a.place < b.place end)
  return items
end

--- q:sensitivity(options). Options:
--   tokens    at most so many tokens of calibration's first texts are run. Default: 512, or fewer (at least 128) if the model is
--             large
--   without   false: `without` and `gain` are not measured, which halves the time
--   progress  as for calibrate
function sensitivity.run(q, given)
  given = options.check(given, KNOWN, "sensitivity")
  options.integer(given.tokens, 1, 2 ^ 31 - 1, "sensitivity: tokens")
  options.boolean(given.without, "sensitivity: without")
  if not q.stats or not q.stats:can_judge() then
    error("sensitivity: the output is judged by texts that calibration kept, and there are none: give stats = "
      .. "model:calibrate(texts)", 0)
  end
  local items = items_of(q)
  local tokens = given.tokens or default_tokens(q.model:graph "hidden", #items)
  local batch = first_texts(q.model, q.stats.kept, tokens)
  local c = {
    q = q, batch = attention.batch(batch), tokens = batch.T, int8 = sensitivity.int8(q), without = given.without ~= false,
    tell = progress.of(given.progress, "measuring sensitivity"), memo = q.memo:aside(), bases = {},
  }
  local ok, result = pcall(measure_all, c, items)
  for _, base in ipairs(c.bases) do
    release(base)
  end
  c.memo:release()
  if not ok then
    error(result, 0)
  end
  return setmetatable({ items = ordered(items), int8 = result, texts = batch.n, tokens = batch.T }, Sensitivity)
end

---- The result --------------------------------------------------------------------------------------------------------

local function decibels(value, sign)
  return value and (sign and "%+.2f" or "%.2f"):format(value) or "-"
end

local function text_of(self, columns)
  local rows = { { "site or attention ", "alone", "without", "gain", "itself" } }
  for i, item in ipairs(self.items) do
    rows[i + 1] = {
      item.name, decibels(item.alone), decibels(item.without), decibels(item.gain, true), decibels(item.sqnr),
    }
  end
  local head = ("SQNR in dB of the last hidden states over %d texts, %d tokens%s"):format(self.texts, self.tokens,
    self.int8 and ("; all as set: %.2f"):format(self.int8) or "")
  return head .. "\n" .. text_table(rows, columns, { "itself", "gain" })
    .. "\nalone: only this one is INT8; without: only this one is FP32; itself: its own output"
end

--- How a prompt prints it.
function Sensitivity:__show(style)
  return text_of(self, style and style.columns)
end

function Sensitivity:__tostring()
  return text_of(self)
end

return sensitivity
