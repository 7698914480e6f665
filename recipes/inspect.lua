#!/usr/bin/env luajit
--- Prints what an artifact contains (model, settings, sites with alpha and scales, sizes, checksums), or how two artifacts
-- differ.
--
--   luajit recipes/inspect.lua MODEL [--diff OTHER] [--verify] [--tensors] [--json]
--
-- The status is 0; with --diff 1 if they differ; 2 if the arguments are wrong, a file cannot be opened, or --verify finds damage.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local json = require "perigee.base.json"
local options = require "perigee.options"
local perigee = require "perigee"
local text_table = require "perigee.show.table"
local utf8 = require "perigee.base.utf8"

local function arguments()
  local args = common.arguments {
    name = "inspect", description = "Prints the contents of an artifact, a file that q:save wrote, or the differences of two.",
    model = "An artifact",
    options = {
      { "diff", { "text", argname = "file", help = "Another artifact: prints what differs; the status is 1 if anything does" } },
      { "verify", { "flag", help = "Check every byte against the checksums. Without it the weights are not read" } },
      { "tensors", { "flag", help = "List all tensors with their checksums" } },
      "json",
    },
  }
  if not args.model then
    common.fail "expected an artifact, the file that q:save wrote; --help lists the options"
  elseif args.diff then
    common.refuse(args, { "tensors" }, "with --diff, which compares all tensors")
  elseif args.json then
    common.refuse(args, { "tensors" }, "with --json, which lists all tensors")
  end
  return args
end

---- Reading -----------------------------------------------------------------------------------------------------------

local BYTES = { F32 = 4, F16 = 2, BF16 = 2, I32 = 4, I8 = 1, U8 = 1, I64 = 8, F64 = 8, BOOL = 1 }

local KINDS = { "packed weights", "tables", "tokenizer", "scales, biases and norms", "fillers and checksums" }

local function kind_of(name, t)
  return name:find "%.packed$" and KINDS[1] or name:find "^tokenizer" and KINDS[3]
    or (name == "checksums" or name:find "%.filler$") and KINDS[5] or #t.shape == 2 and KINDS[2] or KINDS[4]
end

-- { name = { dtype, shape, bytes, checksum } }, and the bytes of each kind.
local function tensors_of(file)
  local list, sizes = {}, {}
  for _, name in ipairs(file:names()) do
    local t = file:tensor(name)
    local entry = { dtype = t.dtype, shape = t.shape, bytes = BYTES[t.dtype] }
    for _, n in ipairs(entry.shape) do
      entry.bytes = entry.bytes * n
    end
    entry.checksum = name ~= "checksums" and ("%08x"):format(file:checksum(name)) or nil
    list[name] = entry
    local kind = kind_of(name, entry)
    sizes[kind] = (sizes[kind] or 0) + entry.bytes
  end
  return list, sizes
end

local function metadata_of(a, key)
  local text = a.file:metadata(key)
  return text and json.object(("%s: %s"):format(a.dir, key), text) or nil
end

-- Reads a file. Returns its contents as a table, and the artifact.
local function read(path, verify)
  local a = perigee.open(path, { verify = verify })
  local head = a.file:metadata("plan." .. a.task) and a.task or "hidden"
  local lowered = a:lower(head) -- this checks the metadata that is read below
  local plan = metadata_of(a, "plan." .. head)
  local info = {
    file = path, bytes = a.file:bytes(), format = a.file:metadata "perigee.format", version = a.file:metadata "perigee.version",
    model = metadata_of(a, "model"), config = metadata_of(a, "config"), settings = metadata_of(a, "settings"),
    calibration = metadata_of(a, "calibration"), linears = plan.linears, attentions = plan.attentions,
    header = ("%08x"):format(a.file:checksum()), verified = verify and "every byte" or "header and small tensors",
    text = a.settings and tostring(a.settings) or nil, title = tostring(a),
  }
  for i, entry in ipairs(lowered.linears) do
    info.linears[i].N, info.linears[i].K = entry.args.w.N, entry.args.w.K
  end
  info.tensors, info.sizes = tensors_of(a.file)
  return info, a
end

---- Printing ----------------------------------------------------------------------------------------------------------

local function cell(pattern, value)
  return value ~= nil and pattern:format(value) or "-"
end

local function megabytes(bytes)
  return ("%.2f MB"):format(bytes / 1e6)
end

local function print_linears(info)
  local rows = { { "linear ", "N x K", "precision ", "alpha", "scale", "zero" } }
  for _, row in ipairs(info.linears) do
    local int8 = row.precision == "int8"
    rows[#rows + 1] = {
      row.name, ("%d x %d"):format(row.N, row.K), row.precision, int8 and cell("%g", row.alpha or nil) or "-",
      row.mode and row.mode ~= "static" and "per " .. row.mode or cell("%.5g", row.scale), cell("%d", row.zero),
    }
  end
  print("\n" .. text_table(rows))
  rows = { { "attention ", "heads x D", "precision ", "SQNR dB" } }
  for _, row in ipairs(info.attentions) do
    rows[#rows + 1] = {
      row.name, ("%d x %d"):format(row.heads, row.width / row.heads), row.precision or "f32", cell("%.1f", row.sqnr),
    }
  end
  print("\n" .. text_table(rows))
end

local function print_tensors(info)
  local rows = { { "tensor ", "type ", "shape ", "bytes", "CRC-32 " } }
  for _, name in ipairs(options.names(info.tensors)) do
    local t = info.tensors[name]
    rows[#rows + 1] = { name, t.dtype, table.concat(t.shape, " x "), ("%d"):format(t.bytes), t.checksum or "-" }
  end
  print("\n" .. text_table(rows))
end

local function print_info(info, args)
  local c = info.calibration
  print(info.title)
  print(("format %s, written by %s; %s, verified: %s; header %s"):format(info.format, info.version, megabytes(info.bytes),
    info.verified, info.header))
  print(("task %s; heads: %s"):format(info.model.task, table.concat(info.model.heads, ", ")))
  if info.text then
    print("settings " .. info.text)
  end
  if c then
    print(("calibrated on %s texts, %s tokens (%s truncated), digest %s"):format(c.texts, c.tokens, c.truncated, c.digest))
  end
  if not info.tensors.tokenizer then
    print "no tokenizer: inputs are ids"
  end
  local rows = { { "part ", "size" } }
  for i, kind in ipairs(KINDS) do
    rows[i + 1] = { kind, megabytes(info.sizes[kind] or 0) }
  end
  print("\n" .. text_table(rows))
  print_linears(info)
  if args.tensors then
    print_tensors(info)
  end
end

---- Differences -------------------------------------------------------------------------------------------------------

-- Compares two decoded JSON values. Adds { path, first value, second value } to the list for each difference.
local function compare(a, b, path, list)
  if type(a) == "table" and type(b) == "table" then
    local keys = {}
    for _, t in ipairs { a, b } do
      for key in pairs(t) do
        keys[key] = true
      end
    end
    local names = {}
    for key in pairs(keys) do
      names[#names + 1] = { key, ("%s%s"):format(path == "" and "" or path .. ".", tostring(key)) }
    end
    table.sort(names, function(x, y) return x[2] < y[2] end)
    for _, name in ipairs(names) do
      compare(a[name[1]], b[name[1]], name[2], list)
    end
  elseif a ~= b then
    list[#list + 1] = { path, a, b }
  end
  return list
end

-- Rows of linears or attentions by name, with the fields that are compared.
local function by_name(rows)
  local map = {}
  for _, row in ipairs(rows) do
    map[row.name] = {
      alpha = row.alpha, scale = row.scale, zero = row.zero, mode = row.mode, precision = row.precision, sqnr = row.sqnr,
      N = row.N, K = row.K, heads = row.heads,
    }
  end
  return map
end

-- By the name of a tensor: its type, shape and checksum as a text.
local function told(tensors)
  local map = {}
  for name, t in pairs(tensors) do
    map[name] = t.checksum and ("%s %s, %s"):format(t.dtype, table.concat(t.shape, " x "), t.checksum) or nil
  end
  return map
end

local COMPARED = { "format", "version", "model", "config", "settings", "calibration" }

-- The differences of two files, a and b, and their artifacts. The steps of plans are compared only if nothing else differs,
-- because they follow from the rest unless the library changed. If the headers are equal as well, all bytes are equal.
local function differences(a, b, of_a, of_b)
  local list = {}
  for _, key in ipairs(COMPARED) do
    compare(a[key], b[key], key, list)
  end
  compare(by_name(a.linears), by_name(b.linears), "", list)
  compare(by_name(a.attentions), by_name(b.attentions), "", list)
  compare(told(a.tensors), told(b.tensors), "tensor", list)
  if #list == 0 then
    for _, head in ipairs(a.model.heads) do
      compare(metadata_of(of_a, "plan." .. head), metadata_of(of_b, "plan." .. head), "plan." .. head, list)
    end
  end
  if #list == 0 then
    compare(a.header, b.header, "header", list)
  end
  return list
end

local function shown(value)
  return value == nil and "-" or type(value) == "table" and json.canonical(value) or tostring(value)
end

local function print_differences(list, a, b)
  if #list == 0 then
    return print(("%s and %s are the same"):format(a.file, b.file))
  end
  local rows = { { "what ", a.file .. " ", b.file .. " " } }
  for _, difference in ipairs(list) do
    rows[#rows + 1] = { difference[1], shown(difference[2]), shown(difference[3]) }
  end
  print(text_table(rows))
end

local function print_json(info)
  info.file, info.title = utf8.repair(info.file), utf8.repair(info.title) -- a path may be anything
  print(json.canonical(info))
end

---- Running -----------------------------------------------------------------------------------------------------------

-- Compares two artifacts. Returns the exit status.
local function print_diff(args, info, artifact)
  local other, other_artifact = read(args.diff, args.verify or false)
  local list = differences(info, other, artifact, other_artifact)
  if args.json then
    local object = {}
    for i, difference in ipairs(list) do
      object[i] = { what = difference[1], first = difference[2], second = difference[3] }
    end
    print(('{"differences":%s,"same":%s}'):format(#list == 0 and "[]" or json.canonical(object), #list == 0))
  else
    print_differences(list, info, other)
  end
  return #list > 0 and 1 or 0
end

common.main(function()
  local args = arguments()
  local info, artifact = read(args.model, args.verify or false)
  if args.diff then
    return print_diff(args, info, artifact)
  elseif args.json then
    print_json(info)
  else
    print_info(info, args)
  end
end, 2)
