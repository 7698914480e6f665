--- Calibrate: runs texts through the FP32 model and keeps what quantization needs to know of every site.
--
-- It streams: each channel's exact minimum and maximum, a bounded sample of rows, and the first texts with FP32's answer. From
-- these follow the static scales for every alpha and how good any setting is, so one calibration serves all settings. Our own
-- FP32 kernels compute it, so the statistics are the same on every CPU, whatever the batches and the number of threads.
local bit = require "bit"
local ffi = require "ffi"
local attention = require "perigee.graph.passes.attention"
local inputs = require "perigee.run.inputs"
local lines = require "perigee.base.lines"
local observer = require "perigee.observer"
local options = require "perigee.options"
local place = require "perigee.graph.passes.place"
local lower = require "perigee.graph.passes.lower"
local pgee = require "perigee.ffi"
local progress = require "perigee.show.progress"
local Runner = require "perigee.run.runner"
local sites = require "perigee.graph.passes.sites"
local tensor = require "perigee.tensor"

local Statistics = {}
Statistics.__index = Statistics

--- What was seen at a site of a graph: { min =, max = F32 [K], sample = F32 [rows][K], count = of all rows }; an error if that is
-- nothing.
function Statistics:site(site)
  if self.released then
    error("the statistics were released; quantizing needs them", 0)
  end
  local seen = self.sites[site.name]
  if not seen then
    error(("the statistics have nothing about the site %s: they were made for another model"):format(site.name), 0)
  end
  if #seen.min ~= site.width then
    error(("the statistics saw %d channels at the site %s, which has %d: they were made for another model"):format(
      #seen.min, site.name, site.width), 0)
  end
  return seen
end

--- Whether there are texts to judge a model's output by.
function Statistics:can_judge()
  return not self.released and self.kept ~= nil
end

--- What was seen of an attention of a graph: { min =, max = F32 [3H] of its queries, keys and values, sqnr = what INT8 keeps of
-- its signal on the first texts, in dB }; an error if that is nothing.
function Statistics:attention_of(node)
  if self.released then
    error("the statistics were released; quantizing needs them", 0)
  end
  local seen = self.attention[node.name]
  if not seen or #seen.min ~= 3 * node.width then
    error(("the statistics have nothing about the attention %s of width %d: they were made for another model"):format(node.name,
      node.width), 0)
  end
  return seen
end

-- FNV-1a over the bits of floats, 32 at a time.
local function hashed(hash, t)
  local bits = ffi.cast("int32_t *", t:pointer())
  for i = 0, #t - 1 do
    hash = bit.bxor(hash, bits[i])
    hash = bit.tobit(hash * 403 + bit.lshift(hash, 24)) -- times 16777619, kept exact
  end
  return hash
end

--- What tells these statistics from others: { texts, tokens, truncated, digest = of what was seen }. It stays when they are
-- released.
function Statistics:digest()
  pgee.raise(options.self, self, Statistics, "digest", "statistics")
  if not self.digested and not self.released then
    local hash, names = bit.tobit(0x811c9dc5), {}
    for _, seen in ipairs { self.sites, self.attention } do
      for name in pairs(seen) do
        names[#names + 1] = name
      end
    end
    table.sort(names)
    for _, name in ipairs(names) do
      local seen = self.sites[name] or self.attention[name]
      hash = hashed(hashed(hash, seen.min), seen.max)
    end
    self.digested = { texts = self.texts, tokens = self.tokens, truncated = self.truncated, digest = bit.tohex(hash) }
  end
  return self.digested
end

--- Frees its memory. Models that were quantized with it stay as they are.
function Statistics:release()
  pgee.raise(options.self, self, Statistics, "release", "statistics")
  self.released = true
  for name, seen in pairs(self.attention) do
    self.attention[name] = nil
    seen.min:release()
    seen.max:release()
  end
  for name, seen in pairs(self.sites) do
    self.sites[name] = nil
    seen.min:release()
    seen.max:release()
    seen.sample:release()
  end
  if self.kept then
    self.kept.hidden:release()
    self.kept = nil
  end
end

function Statistics:__tostring()
  local cut = self.truncated > 0 and (", %d of the texts truncated"):format(self.truncated) or ""
  return ("%d texts, %d tokens%s"):format(self.texts, self.tokens, cut)
end

---- The run -----------------------------------------------------------------------------------------------------------

local calibrate = {}

-- The next text of a list or of an iterator.
local function source(texts)
  if type(texts) == "function" then
    return texts
  elseif type(texts) == "string" or type(texts) ~= "table" then
    error(("calibrate: expected a list of texts, or an iterator such as perigee.lines(path); got %s"):format(
      pgee.describe(texts)), 0)
  end
  options.list(texts, "calibrate: expected a list of texts")
  local i = 0
  return function()
    i = i + 1
    return texts[i]
  end
end

local KNOWN = { samples = true, rows = true, budget = true, progress = true }

-- Rows that are kept of each site, unless the caller says otherwise: so many that SQNR is within a decibel of all rows', and in a
-- large model no more than fit in this many bytes.
local ROWS, LEAST_ROWS, BYTES = 512, 128, 128 * 2 ^ 20

local function rows_of(model)
  local width = 0
  for _, site in ipairs(sites.list(model:graph "hidden")) do
    width = width + site.width
  end
  return math.max(LEAST_ROWS, math.min(ROWS, math.floor(BYTES / (4 * width))))
end

local function read_options(model, given)
  given = options.check(given, KNOWN, "calibrate")
  local read = { samples = given.samples or 256, rows = given.rows or rows_of(model), budget = given.budget or 1024 }
  for name, value in pairs(read) do
    if type(value) ~= "number" or value % 1 ~= 0 or value < 1 or value > 2 ^ 31 then
      error(("calibrate: %s is %s, expected an integer of at least 1"):format(name, pgee.describe(value)), 0)
    end
  end
  read.progress = progress.of(given.progress, "calibrating")
  return read
end

-- An observer for each site and each attention, by name.
local function make_observers(graph, rows)
  local observers = {}
  for _, node in ipairs(sites.attentions(graph)) do
    observers[node.name] = observer.new(3 * node.width, { sample = 1, name = node.name })
  end
  for _, site in ipairs(sites.list(graph)) do
    observers[site.name] = observer.new(site.width, { sample = rows, name = site.name })
  end
  return observers
end

---- Texts that are kept -----------------------------------------------------------------------------------------------

-- The first texts, as ids, and what FP32 made of them: an INT8 model's output is judged by these without running FP32 again.
local Kept = {}
Kept.__index = Kept

local TEXTS, TOKENS = 16, 2048

local function new_kept()
  return setmetatable({ inputs = {}, tokens = 0, rows = {}, open = true }, Kept)
end

local function ids_of(batch, i)
  local ids, types = {}, {}
  for t = batch.starts[i], batch.starts[i + 1] - 1 do
    ids[#ids + 1], types[#types + 1] = batch.ids[t], batch.types[t]
  end
  return { ids = ids, types = types }
end

-- Takes sequences of a batch, in order, as long as there is room: one at least. Returns how many tokens of the batch that is.
function Kept:take(batch)
  local before = self.tokens
  for i = 0, batch.n - 1 do
    local length = batch.starts[i + 1] - batch.starts[i]
    self.open = self.open and #self.inputs < TEXTS and (self.tokens == 0 or self.tokens + length <= TOKENS)
    if not self.open then
      break
    end
    table.insert(self.inputs, ids_of(batch, i))
    self.tokens = self.tokens + length
  end
  return self.tokens - before
end

-- The first `wanted` rows of a batch of which `token` rows came before these.
function Kept:add(hidden, token, wanted)
  local count = math.min(#hidden, wanted - token)
  if count > 0 then
    local view = hidden:rows(1, count)
    table.insert(self.rows, view:copy())
    view:release()
  end
end

-- { inputs =, tokens =, hidden = F32 [tokens][H] }
function Kept:close()
  local H = self.rows[1].shape[2]
  local hidden, at = tensor.new("F32", { self.tokens, H }), 0
  local to = hidden:pointer()
  for _, rows in ipairs(self.rows) do
    ffi.copy(to + at * H, (rows:pointer()), #rows * H * 4)
    at = at + #rows
  end
  self:release()
  return { inputs = self.inputs, tokens = self.tokens, hidden = hidden }
end

function Kept:release()
  for _, rows in ipairs(self.rows) do
    rows:release()
  end
  self.rows = {}
end

---- Streaming ---------------------------------------------------------------------------------------------------------

local function stream(model, runner, next_text, read, kept)
  local seen, tokens, truncated = 0, 0, 0
  local batch = inputs.new(model)
  local function flush()
    local wanted = kept:take(batch)
    runner:run(batch, function(output, _, _, token)
      if token < wanted then
        local hidden = output "hidden"
        kept:add(hidden, token, wanted)
        hidden:release()
      end
    end)
    tokens, truncated = tokens + batch.T, truncated + #batch.truncated
    batch = inputs.new(model)
    read.progress(seen, read.samples)
  end
  while seen < read.samples do
    local text = next_text()
    if text == nil then
      break
    end
    seen = seen + 1
    batch:add(text, "calibrate: input " .. seen)
    if batch.T >= read.budget then
      flush()
    end
  end
  if batch.n > 0 then
    flush()
  end
  if seen > 0 and seen < read.samples then
    read.progress(seen, seen)
  end
  return seen, tokens, truncated
end

---- Attention ---------------------------------------------------------------------------------------------------------

-- Tokens of the first texts that INT8 attention is judged by; one text at least.
local JUDGED = 512

local function first_texts(model, kept)
  local batch, tokens = inputs.new(model), 0
  for i, input in ipairs(kept.inputs) do
    tokens = tokens + #input.ids
    if i > 1 and tokens > JUDGED then
      break
    end
    batch:add(input)
  end
  return batch
end

-- Runs some texts once more, keeps all rows of their queries, keys and values, and sets the SQNR of every attention's statistics.
local function judge(model, graph, kept, seen)
  local batch, rows = first_texts(model, kept), {}
  local ok, failure = pcall(function()
    for _, node in ipairs(sites.attentions(graph)) do
      rows[node.name] = observer.new(3 * node.width, { sample = batch.T, name = node.name })
    end
    local runner = Runner.new(lower.pass(place(sites.observe_attention(graph)), { memo = model.memo, observers = rows }), batch.T)
    local ran, why = pcall(runner.run, runner, batch, function() end)
    runner:release()
    if not ran then
      error(why, 0)
    end
    for _, node in ipairs(sites.attentions(graph)) do
      local own = seen[node.name]
      local qkv, scales = rows[node.name]:sample(), attention.scales(own, node.heads)
      own.sqnr = attention.sqnr(qkv, attention.batch(batch), node.heads, scales, attention.bias(node, model.memo))
      qkv:release()
      scales:release()
    end
  end)
  for _, o in pairs(rows) do
    o:release()
  end
  if not ok then
    error(failure, 0)
  end
end

local function statistics(graph, observers, texts, tokens, truncated, kept)
  local stats = {
    sites = {}, attention = {}, texts = texts, tokens = tokens, truncated = truncated, kept = kept:close(),
  }
  for _, site in ipairs(sites.list(graph)) do
    local o = observers[site.name]
    stats.sites[site.name] = { min = o.min, max = o.max, sample = o:sample(), count = o.count }
  end
  for _, node in ipairs(sites.attentions(graph)) do
    local o = observers[node.name]
    stats.attention[node.name] = { min = o.min, max = o.max }
  end
  return setmetatable(stats, Statistics)
end

--- model:calibrate(texts, options): statistics over a list of inputs, or an iterator of them.
--   samples   texts taken, from the first on; 256
--   rows      rows of activations kept of each site, for SQNR; 512, or fewer so that they take 128 MiB, but 128
--   budget    tokens run at once
--   progress  true, false, or a function (done, total); by default a bar if standard error is a terminal
function calibrate.run(model, texts, given)
  options.method(model, "calibrate")
  local read, path = read_options(model, given), lines.path(texts)
  local next_text = source(texts)
  local plain = model:graph "hidden"
  local graph = place(sites.observe(plain))
  local observers, kept = make_observers(plain, read.rows), new_kept()
  local function release()
    kept:release()
    for _, o in pairs(observers) do
      o:release()
    end
  end
  local ok, result = pcall(function()
    local runner = Runner.new(lower.pass(graph, { memo = model.memo, observers = observers }), read.budget)
    local ran, seen, tokens, truncated = pcall(stream, model, runner, next_text, read, kept)
    runner:release()
    if not ran then
      error(seen, 0)
    elseif seen == 0 then
      error("calibrate: there is no text to calibrate on", 0)
    end
    local stats = statistics(plain, observers, seen, tokens, truncated, kept)
    local judged, why = pcall(judge, model, plain, stats.kept, stats.attention)
    if not judged then
      stats:release()
      error(why, 0)
    end
    stats.source = { path = path, samples = read.samples, rows = read.rows }
    return stats
  end)
  release()
  if not ok then
    error(result, 0)
  end
  return result
end

return calibrate
