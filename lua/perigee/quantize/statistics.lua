--- Statistics: what calibration saw, which model:calibrate returns and model:quantize takes. A sample of rows and the first texts
-- are part of it, so that the quality of any settings can be measured later.
local bit = require "bit"
local ffi = require "ffi"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local settings = require "perigee.quantize.settings"

local Statistics = {}
Statistics.__index = Statistics

--- Statistics from a table of its fields:
--   sites      { [name of a site] = { min, max, low, high = F32 [K], sample = F32 [rows][K], count = number of rows seen } }.
--              min and max are the ranges of the channels with 0 in them, low and high those without it
--   attention  { [name of an attention] = { min, max = F32 [3H] } }
--   kept       { inputs, tokens, hidden }: the first texts and the last hidden states of FP32 (kept_texts.lua)
--   texts, tokens, truncated   how many texts and tokens were seen, and how many texts were truncated
--   source     where the texts came from (calibrate.lua), or nil
function Statistics.new(fields)
  return setmetatable(fields, Statistics)
end

--- Returns what was seen at a site of a graph: { min, max, low, high = F32 [K], sample = F32 [rows][K], count = number of rows
-- seen }. It is an error if the statistics do not have the site with its width.
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

--- Whether the first texts are there, by which a model's output is judged.
function Statistics:can_judge()
  return not self.released and self.kept ~= nil
end

--- Returns what was seen of an attention of a graph: { min, max = F32 [3H] of its queries, keys and values, sqnr = SQNR of INT8
-- attention on the first texts, in dB }. It is an error if the statistics do not have the attention with its width.
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

-- FNV-1a over the bits of floats, 32 bits at a time.
local function hashed(hash, t)
  local bits = ffi.cast("int32_t *", t:pointer())
  for i = 0, #t - 1 do
    hash = bit.bxor(hash, bits[i])
    hash = bit.tobit(hash * 403 + bit.lshift(hash, 24)) -- times 16777619, kept exact
  end
  return hash
end

--- Returns { texts, tokens, truncated, digest = a hash of all ranges }, which tells these statistics from others. The result is
-- still there after release if it was asked for before.
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

--- Frees its memory. Models that were quantized with it keep running.
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
    for _, key in ipairs { "min", "max", "low", "high", "sample" } do
      seen[key]:release()
    end
  end
  if self.kept then
    self.kept.hidden:release()
    self.kept = nil
  end
end

-- From so many tokens on, other or more texts change the SQNR of all-MiniLM-L6-v2 by less than 0.4 dB (lua/FIGURES.md).
local ENOUGH = 2000

--- A sentence if calibration saw so few tokens that the ranges, and with them the quality, depend on which texts these were; nil
-- from 2000 tokens on.
function Statistics:warning()
  pgee.raise(options.self, self, Statistics, "warning", "statistics")
  if self.tokens < ENOUGH then
    return ("%d tokens are few: from about %d tokens on, the quality hardly depends on the texts"):format(self.tokens, ENOUGH)
  end
end

-- The files that the texts came from, and how many texts these have.
local function origin_of(source)
  if source and source.origin then
    return ("; of the %d in %s"):format(source.all, table.concat(source.origin.files, ", "))
  end
  return source and source.path and ("; the first of " .. source.path) or ""
end

function Statistics:__tostring()
  local cut = self.truncated > 0 and (", %d of the texts truncated"):format(self.truncated) or ""
  local warning = self:warning()
  return ("%d texts, %d tokens%s%s%s"):format(self.texts, self.tokens, cut, origin_of(self.source),
    warning and "; " .. warning or "")
end

--- Raises the error that an alpha was given without statistics.
function Statistics.refuse_alpha(alpha)
  error(("quantize: alpha is %g, but smoothing needs statistics: give stats = model:calibrate(texts), or leave alpha out"):format(
    alpha), 0)
end

--- Raises an error if settings need statistics and there are none: for static activations, and for an alpha that is not the
-- default. Sites that are skipped need none. chosen: the settings; sites: the sites of the model.
function Statistics.check_needed(stats, chosen, sites)
  for _, site in ipairs(stats and {} or sites) do
    local own = settings.of(chosen, site)
    if own.activations == "static" and not own.skip then
      error("quantize: static activations need statistics: stats = model:calibrate(texts)", 0)
    elseif own.alpha and own.alpha ~= settings.ALPHA[own.activations] and not own.skip then
      Statistics.refuse_alpha(own.alpha)
    end
  end
end

return Statistics
