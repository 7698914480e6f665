--- Report: writes what is known about a quantized model to one file: settings, quality, SQNR and clip rate of each site, outlier
-- channels, alpha curves, time per step, memory, environment, and how to make the model again.
--
--   q:report "report.html"
--
-- The end of the file's name chooses the form: .html (one file, without scripts and links), .json (all figures), .csv (a row for
-- each site). Options:
--   sweep        false: no alpha curves, which take the longest. Default: true
--   distance     what evaluate.distance returned
--   comparison   what evaluate.compare returned for { { "FP32", model }, { "INT8", q } }: scores with intervals
--   speed        a list of { batch =, tokens =, fp32 = { median = seconds }, int8 = { median = } }
--   files        sizes of the files in bytes: { fp32 =, int8 = }
--   command      the command that made the model, to print
local collect = require "perigee.report.collect"
local file = require "perigee.base.file"
local json = require "perigee.base.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"

local report = {}

local KNOWN = { sweep = true, distance = true, comparison = true, speed = true, files = true, command = true }

-- The same value without what JSON lacks: NaN and infinity become null, objects lose their functions.
local function plain(value)
  if type(value) == "table" then
    local copy = {}
    for key, inside in pairs(value) do
      copy[key] = plain(inside)
    end
    return copy
  end
  return type(value) == "number" and value - value ~= 0 and json.null or value
end

local function cell(value)
  local text = type(value) == "number" and ("%.9g"):format(value) or value == nil and "" or tostring(value)
  return text:find '[,"\n]' and '"' .. text:gsub('"', '""') .. '"' or text
end

-- A row for each site.
local function csv(r)
  local lines = {
    "site,width,precision,alpha,sqnr_db,clipped,largest_before,median_before,largest_after,median_after",
  }
  for _, site in ipairs(r.sites) do
    local after, cells = site.after or {}, {}
    local row = {
      site.name, site.width, site.precision, site.alpha or "", site.sqnr or "", site.clipped or "", site.before.largest,
      site.before.median, after.largest or "", after.median or "",
    }
    for i, value in ipairs(row) do
      cells[i] = cell(value)
    end
    lines[#lines + 1] = table.concat(cells, ",")
  end
  return table.concat(lines, "\n") .. "\n"
end

local FORMS = {
  html = function(r) return require("perigee.report.html").page(r) end,
  json = function(r) return json.canonical(plain(r)) .. "\n" end,
  csv = csv,
}

--- The form that the end of a path chooses: "html", "json" or "csv". Another end is an error.
function report.form(path)
  local form = type(path) == "string" and path:match "%.(%l+)$"
  if not FORMS[form] then
    error(("report: the path is %s, expected a name that ends in .html, .json or .csv"):format(pgee.describe(path)), 0)
  end
  return form
end

--- For Quantized: q:report(path, options). Returns the figures, a table.
function report.write(q, path, given)
  options.method(q, "report")
  given = options.check(given, KNOWN, "report")
  local form = report.form(path)
  local r = collect.run(q, given)
  if form == "csv" and #r.sites == 0 then
    error("report: a CSV file has a row for each site, and without statistics nothing is known of sites", 0)
  end
  local ok, why = file.replace(path, FORMS[form](r))
  if not ok then
    error("report: " .. why, 0)
  end
  return r
end

return report
