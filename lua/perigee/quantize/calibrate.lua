--- Calibrate: runs texts through the FP32 model and collects statistics of every site.
--
-- Calibration streams. It keeps the exact minimum and maximum of each channel, a sample of rows of bounded size, and the first
-- texts with FP32's hidden states. The static scales for every alpha and the SQNR of any settings follow from these, so one
-- calibration serves all settings. Calibration runs on the native FP32 kernels. So the statistics have the same bits on every
-- CPU, for all batch sizes and numbers of threads.
local attention = require "perigee.graph.passes.attention"
local from_files = require "perigee.evaluate.texts"
local inputs = require "perigee.run.inputs"
local Kept = require "perigee.quantize.kept_texts"
local lines = require "perigee.base.lines"
local observer = require "perigee.observer"
local options = require "perigee.options"
local place = require "perigee.graph.passes.place"
local lower = require "perigee.graph.passes.lower"
local pgee = require "perigee.ffi"
local progress = require "perigee.show.progress"
local Runner = require "perigee.run.runner"
local sites = require "perigee.graph.passes.sites"
local Statistics = require "perigee.quantize.statistics"
local utf8 = require "perigee.base.utf8"

---- The run -----------------------------------------------------------------------------------------------------------

local calibrate = {}

-- A function that returns the next text of an iterator, or of a list. Of a list with more than `samples` texts it returns that
-- many, evenly spaced.
local function source(texts, samples)
  if type(texts) == "function" then
    return texts
  elseif type(texts) == "string" or type(texts) ~= "table" then
    error(("calibrate: expected a list of texts, such as perigee.texts(path), or an iterator; got %s"):format(
      pgee.describe(texts)), 0)
  end
  options.list(texts, "calibrate: expected a list of texts")
  local i, n = 0, #texts
  return function()
    i = i + 1
    if n <= samples then
      return texts[i]
    end
    return i <= samples and texts[math.floor((i - 1) * n / samples) + 1] or nil
  end
end

local KNOWN = { samples = true, rows = true, budget = true, progress = true }

-- How many rows of each site are sampled by default: ROWS. With so many, the SQNR of the sample is within 1 dB of the SQNR of all
-- rows. In a large model the rows are fewer, at least LEAST_ROWS, so that all samples take at most BYTES.
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

---- Streaming ---------------------------------------------------------------------------------------------------------

-- An error if a text is not UTF-8. path: the file that the texts are the lines of.
local function check_utf8(text, path, line)
  local bad = type(text) == "string" and utf8.malformed(text)
  if bad then
    error(("calibrate: %s, line %d: byte %d of the line is 0x%02X, which is not UTF-8; expected a text file in UTF-8"):format(
      path, line, bad, text:byte(bad)), 0)
  end
end

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
    if read.path then
      check_utf8(text, read.path, seen)
    end
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

-- INT8 attention is judged by the first texts, as many as fit in so many tokens, and by at least one text.
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

-- Runs the first texts again with all rows of their queries, keys and values kept. Sets `sqnr`, in dB, in the statistics of every
-- attention: its INT8 output against its FP32 output.
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
  local stats = Statistics.new {
    sites = {}, attention = {}, texts = texts, tokens = tokens, truncated = truncated, kept = kept:close(),
  }
  for _, site in ipairs(sites.list(graph)) do
    local o = observers[site.name]
    stats.sites[site.name] = {
      min = o.min, max = o.max, low = o.low, high = o.high, sample = o:sample(), count = o.count,
    }
  end
  for _, node in ipairs(sites.attentions(graph)) do
    local o = observers[node.name]
    stats.attention[node.name] = { min = o.min, max = o.max }
  end
  return stats
end

--- model:calibrate(texts, options): returns statistics (quantize/statistics.lua) over a list of inputs, or an iterator of them.
--   samples   texts taken: of a list evenly spaced, of an iterator from the first one on. Default: 256
--   rows      rows of activations sampled at each site, by which SQNR is measured. Default: 512, or fewer (at least 128) so that
--             all samples take at most 128 MiB
--   budget    tokens that are run at once. Default: 1024
--   progress  true, false, or a function (done, total). Default: a bar if standard error is a terminal
function calibrate.run(model, texts, given)
  options.method(model, "calibrate")
  local read, path, origin = read_options(model, given), lines.path(texts), from_files.origin(texts)
  read.path = path
  local next_text = source(texts, read.samples)
  local plain = model:graph "hidden"
  local graph = place(sites.observe(plain))
  local observers, kept = make_observers(plain, read.rows), Kept.new()
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
    stats.source = { path = path, origin = origin, samples = read.samples, rows = read.rows, all = origin and #texts }
    return stats
  end)
  release()
  if not ok then
    error(result, 0)
  end
  return result
end

return calibrate
