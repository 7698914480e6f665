--- Options and errors that the recipes share. loading.lua loads models and texts, judging.lua compares models and prints.
--
-- An option is described once, as perigee.options describes the options of tasks: a kind and more. The description is here if
-- several recipes have the option. An option that a recipe accepts has an effect: if an option has no effect in a mode, the
-- recipe calls refuse().

-- A recipe that lacks what it needs ends with one line, not with a traceback.
local function need(name)
  local ok, module = pcall(require, name)
  if not ok then
    local why = tostring(module):gsub("^%S-%.lua:%d+: ", "")
    if why:find("module '" .. name .. "' not found", 1, true) then
      why = ("the Lua module %s is not installed (Debian: lua-%s); `make deps` says what is missing"):format(name, name)
    end
    io.stderr:write("error: ", (why:gsub("%s*\n%s*", " ")), "\n")
    os.exit(1)
  end
  return module
end

local argparse, perigee = need "argparse", need "perigee"
local find = require "perigee.find"
local json = require "perigee.base.json"
local options = require "perigee.options"

local common = {}

local here = debug.getinfo(1, "S").source:match "^@(.*)/[^/]*$" or "."
local work = find.absolute "." .. "/"
if here:sub(1, #work) == work then -- what is printed of the demo's files is short then, and can be copied
  here = here:sub(#work + 1)
end

--- The folder of the recipes, and the one that it is in.
common.here, common.top = here, here == "recipes" and "." or here:match "^(.*)/recipes$" or here .. "/.."

--- Raises an error that blames no line: what a user did wrong.
function common.fail(...)
  error(string.format(...), 0)
end
local fail = common.fail

-- A word as a shell reads it.
local function quoted(word)
  return word:find "^[%w%._/=+-]+$" and word or "'" .. word:gsub("'", [['\'']]) .. "'"
end

--- A command line for a shell that starts a recipe, by its name or, without one, the recipe that runs now. `perigee` sets
-- arg.program, its own path, and arg.command, the command that was given.
function common.command(recipe, words)
  local line = {}
  for i, word in ipairs(words) do
    line[i] = quoted(word)
  end
  local start
  if arg.program then
    start = quoted(arg.program) .. " " .. (recipe or arg.command)
  else
    start = "luajit " .. quoted(recipe and ("%s/%s.lua"):format(here, recipe) or arg[0])
  end
  return start .. " " .. table.concat(line, " ")
end

---- Options -----------------------------------------------------------------------------------------------------------

-- How the text of an option becomes its value: (text, description, "--name") -> value, or an error. Texts that are no numbers
-- are given on as they are, so that the error shows them.
local READ = {
  text = function(text) return text end,
  other = function(text) return text end,
  texts = function(text) return text end,
  integer = function(text, entry, name)
    return options.integer(tonumber(text) or text, entry[2], entry[3] or 2 ^ 31 - 1, name)
  end,
  number = function(text, entry, name)
    return options.number(tonumber(text) or text, entry[2], entry[3], name)
  end,
  choice = function(text, entry, name) return options.choice(text, entry[2], name) end,
  column = function(text) return tonumber(text) or text end,
  alpha = function(text, _, name)
    local alpha = tonumber(text)
    if text ~= "off" and text ~= "auto" and not (alpha and alpha >= 0 and alpha <= 1) then
      fail("%s is '%s', expected a number from 0 to 1, off, or auto", name, text)
    end
    return text ~= "off" and (alpha or text)
  end,
  table = function(text, _, name)
    local chunk = loadstring("return " .. text, "=" .. name)
    local ok, value = pcall(chunk and setfenv(chunk, {}) or error)
    if not ok or type(value) ~= "table" then
      fail("%s is '%s', expected a Lua table such as { alpha = 0.7 }", name, text)
    end
    return value
  end,
}

local FORMS = {
  tsv = true, csv = true, jsonl = true, json = true, conll = true, trec = true, parallel = true, retrieval = true,
}
local CALIBRATION_FORMS = { tsv = true, csv = true, jsonl = true, json = true, conll = true, trec = true, text = true }

-- The options that several recipes have: { kind, ... } as perigee.options has them, and the kinds above. Further fields: help;
-- default; said, the default in words; list, whether there may be several; path, whether each is a file.
local SHARED = {
  no_calibration = { "flag", help = "Use no statistics: nothing is smoothed" },
  calibration = {
    "text", list = true, path = true, said = "recipes/data/calibration.txt",
    help = "Files to calibrate on: one text a line, or labelled",
  },
  calibration_text = { "column", help = "Column of the text in calibration files: its name in the header, or its number" },
  calibration_pair = { "column", help = "Column of the second text in calibration files" },
  calibration_part = { "text", help = "Part of a calibration file that has several", said = "train" },
  calibration_as = { "choice", CALIBRATION_FORMS, help = "Form of the calibration files, if it is not what they look like" },
  samples = { "integer", 1, default = 256, help = "How many inputs to calibrate on" },
  eval = { "text", help = "Labelled file to judge by; lua/API.md lists the forms", said = "recipes/data/pairs.tsv" },
  text = { "column", help = "Column of the text in the labelled file: its name in the header, or its number" },
  pair = { "column", help = "Column of the second text" },
  label = { "column", help = "Column of the label or score" },
  part = { "text", help = "Part of a labelled file that has several", said = "test" },
  header = { "flag", help = "The first line of the table names its columns, also if none of the names is known" },
  as = { "choice", FORMS, help = "Form of the labelled file, if it is not what it looks like" },
  max_tokens = { "integer", 2, help = "Most tokens of a text", said = "what the checkpoint says" },
  strict_files = { "flag", help = "Refuse a checkpoint whose files have a key that has no effect here" },
  threads = { "integer", 1, 256, help = "Threads", said = "PERIGEE_THREADS, or one for each physical core" },
  json = { "flag", help = "Print one JSON object instead of text" },
}

for name, entry in pairs(require "setting_options") do
  SHARED[name] = entry
end

--- The options that a checkpoint is loaded with, those that calibrate, and those of a labelled file.
common.LOADING = { "max_tokens", "strict_files" }
common.CALIBRATING = {
  "calibration", "calibration_text", "calibration_pair", "calibration_part", "calibration_as", "samples",
}
common.LABELLED = { "text", "pair", "label", "part", "header", "as" }

--- Lists of options as one.
function common.join(...)
  local all = {}
  for _, list in ipairs { ... } do
    for _, name in ipairs(list) do
      all[#all + 1] = name
    end
  end
  return all
end

--- The name of an option on the command line: "--max-tokens" for max_tokens.
function common.flag(name)
  return "--" .. name:gsub("_", "-")
end

--- Whether there is something of that name.
common.exists = json.exists

-- The parts of a list's text: between commas, without spaces around them. A file may have commas in its name, and so may a text
-- if the option is repeated.
local function parts_of(text, entry, repeated)
  local parts = {}
  for part in (text .. ","):gmatch((repeated or entry.path and common.exists(text)) and "(.*)," or "([^,]*),") do
    part = part:match "^%s*(.-)%s*$"
    parts[#parts + 1] = part ~= "" and part or nil
  end
  return parts
end

--- The value of an option from its texts on the command line: a list if the option is one, each entry once.
function common.value(name, entry, texts)
  if entry[1] ~= "texts" and not entry.list then
    return READ[entry[1]](texts[1], entry, common.flag(name))
  end
  local list, taken = {}, {}
  for _, text in ipairs(texts) do
    for _, part in ipairs(parts_of(text, entry, entry[1] == "texts" and #texts > 1)) do
      list[#list + 1] = not taken[part] and READ[entry[1]](part, entry, common.flag(name)) or nil
      taken[part] = true
    end
  end
  return #list > 0 and list or fail("%s is '%s', expected one or several, with commas", common.flag(name),
    table.concat(texts, "', '"))
end

-- The text of --help about an option.
local function help_of(entry)
  local help, default = entry.help:match "^(.*)(%. Default: .*)$"
  if not help then
    help, default = entry.help, entry.said or entry.default
    default = type(default) == "table" and table.concat(default, ",") or default
    default = default ~= nil and ". Default: " .. tostring(default) or ""
  end
  if entry[1] == "choice" then
    help = ("%s (%s)"):format(help, table.concat(options.names(entry[2]), ", "))
  end
  if entry[1] == "texts" then
    help = help .. ". Commas between, or repeat the option for each, which may then have commas"
  elseif entry.list then
    help = help .. ". Several: repeat it, or commas between"
  end
  return help .. default
end

local function add(parser, name, entry)
  local flags = common.flag(name)
  for _, also in ipairs(entry.also or {}) do
    flags = flags .. " " .. common.flag(also)
  end
  if entry[1] == "flag" then
    return parser:flag(flags, entry.help):target(name)
  end
  local option = parser:option(flags, help_of(entry)):target(name):count "*":init(nil)
  option:argname("<" .. (entry.argname or name) .. ">")
  option:action(function(result, target, text)
    result[target] = result[target] or {}
    table.insert(result[target], text)
  end)
end

-- The descriptions by name, and their order, of a list of names of shared ones and of { name, description }.
local function described(list)
  local entries, order = {}, {}
  for i, item in ipairs(list) do
    local name = type(item) == "table" and item[1] or item
    order[i], entries[name] = name, type(item) == "table" and item[2] or SHARED[name] or error("no shared option " .. name)
  end
  return entries, order
end

-- The one model that was named, as an argument or by --model.
local function named_model(args)
  local named = args.named_model
  args.named_model = nil
  if args.model and named and args.model ~= named then
    fail("the model is '%s' and --model is '%s': expected one of them", args.model, named)
  end
  args.model = args.model or named
end

-- argparse's messages as one line.
local function on_error(_, message)
  message = message:gsub("\n", ". "):gsub("Did you mean one of these: ('[^']*')%?", "Did you mean %1?")
  message = message:gsub("%.%. ", ". ")
  fail("%s%s --help lists the options", message, message:find "%?$" and "" or ";")
end

--- The arguments of a recipe, read from the command line. given:
--   name, description, epilog   for --help
--   model      what MODEL is, in words; nil if there is none. It is an argument, unless `add` adds it
--   default    a function that gives MODEL's default path, with `said`, what that is in words; nil: there is none
--   required   whether MODEL must be given
--   add        function(parser, title) that adds further arguments of argparse's; title: the name that --help shows
--   options    a list of names of shared options and of { name, description }
-- Returns them by their names ("max_tokens" for --max-tokens), defaults filled in; args.given has the names of those that were
-- given: { max_tokens = true }.
function common.arguments(given)
  local title = arg.command and "perigee " .. arg.command or given.name
  local parser = argparse(title, given.description, given.epilog):help_max_width(110)
  parser.error = on_error
  if given.model then
    local default = given.said and ". Default: " .. given.said or ""
    if not given.add then
      parser:argument("model", given.model .. default):args "?"
    end
    parser:option("--model", "The same as MODEL"):target "named_model":argname "<model>":overwrite(false)
  end
  if given.add then
    given.add(parser, title)
  end
  local entries, order = described(given.options)
  for _, name in ipairs(order) do
    add(parser, name, entries[name])
  end
  local args = parser:parse()
  args.given = {}
  for _, name in ipairs(order) do
    local entry, texts = entries[name], args[name]
    args.given[name] = texts ~= nil or nil
    if texts ~= nil and entry[1] ~= "flag" and not entry.raw then
      args[name] = common.value(name, entry, texts)
      if #texts > 1 and entry[1] ~= "texts" and not entry.list then
        fail("%s is given %d times, expected once", common.flag(name), #texts)
      end
    elseif texts == nil then
      args[name] = entry.default
    end
  end
  if given.model then
    named_model(args)
  end
  if args.threads then
    perigee.threads(args.threads)
  end
  return args
end

--- An error if one of the options was given, which has no effect for the reason `why`: "with --json: ...".
function common.refuse(args, names, why)
  for _, name in ipairs(names) do
    if args.given[name] then
      fail("%s has no effect %s", common.flag(name), why)
    end
  end
end

--- Whether activations are symmetric, of --symmetric and --asymmetric; nil if neither was given.
function common.symmetric(args)
  if args.symmetric and args.asymmetric then
    fail "--symmetric and --asymmetric exclude each other: expected one of them"
  end
  if args.symmetric or args.asymmetric then
    return args.symmetric or false
  end
end

---- Running -----------------------------------------------------------------------------------------------------------

-- Removes the recipe's line from an error that a user made, because the user did not write that line. An error of the recipe's
-- own code keeps its line.
local function without_line(message)
  local path, rest = tostring(message):match "^([^\n]-)%.lua:%d+: (.*)$"
  local folder = here:match "[^/]*$"
  return path and (path:match "([^/]*)/[^/]*$" or folder) == folder and not rest:find "^attempt to " and rest or tostring(message)
end

--- Runs a recipe. Its errors end it with one line and the status `failed` (1). A full disk is such an error, because the
-- printed text may be the only result. Without an error the status is the result of f, or 0 if f returns nothing. With
-- PERIGEE_TRACE in the environment an error includes the traceback.
function common.main(f, failed)
  local ok, result = xpcall(f, function(message)
    return os.getenv "PERIGEE_TRACE" and debug.traceback(message, 2) or without_line(message)
  end)
  local flushed, why = io.stdout:flush()
  if not (ok and flushed) then
    io.stderr:write("error: ", ok and "what is printed cannot be written: " .. why or tostring(result), "\n")
    os.exit(failed or 1)
  elseif result then
    os.exit(result)
  end
end

--- For a recipe without arguments: answers --help and refuses all else.
function common.no_arguments(name, description)
  common.main(function()
    common.arguments { name = name, description = description, options = {} }
  end)
end

return common
