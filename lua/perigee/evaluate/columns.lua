--- Columns: finds which columns of a table are the text, the second text of a pair, and the label: by options, by the names in a
-- header, or by the shape of the table. Makes sets of tables (evaluate/read.lua).
local pgee = require "perigee.ffi"
local json = require "perigee.base.json"
local options = require "perigee.options"
local fail = require("perigee.evaluate.rows").fail

local columns = {}

local PAIRS = {
  { "sentence1", "sentence2" }, { "sentence_1", "sentence_2" }, { "premise", "hypothesis" }, { "prem", "hyp" },
  { "question1", "question2" }, { "#1 string", "#2 string" }, { "text1", "text2" }, { "text_a", "text_b" },
  { "query", "passage" }, { "query", "document" }, { "question", "sentence" }, { "s1", "s2" },
}
local TEXTS = { "text", "sentence", "utterance", "review", "content", "question", "query", "input" }
local LABELS = {
  "label", "gold_label", "labels", "category", "intent", "class", "score", "similarity", "similarity_score", "quality",
  "sentiment", "relevance", "target", "is_duplicate",
}

---- By name -----------------------------------------------------------------------------------------------------------

-- Finds the columns text, pair and label by the known names. has(name): the name of the table's column that is called `name` in
-- lower case, or nil.
local function known(has)
  local found = {}
  for _, pair in ipairs(PAIRS) do
    if not found.pair and has(pair[1]) and has(pair[2]) then
      found.text, found.pair = has(pair[1]), has(pair[2])
    end
  end
  for _, name in ipairs(TEXTS) do
    found.text = found.text or has(name)
  end
  for _, name in ipairs(LABELS) do
    found.label = found.label or has(name)
  end
  return found
end

local MOST, LONGEST = 20, 40 -- names that a message lists, and bytes of each

local function names_of(list)
  local names = {}
  for i = 1, math.min(#list, MOST) do
    names[i] = ("'%s'"):format(#list[i] <= LONGEST and list[i] or list[i]:sub(1, LONGEST) .. "...")
  end
  return table.concat(names, ", ") .. (#list > MOST and (" and %d more"):format(#list - MOST) or "")
end

-- The names of the options that choose columns, for messages.
local function roles_of(given)
  local called = given.called
  return ("%stext, %spair and %slabel"):format(called, called, called)
end

-- The names of the columns text, pair and label: those that options give, else known names. all: the names in the table.
local function by_name(all, given, path, line)
  local there, lower = {}, {}
  for _, name in ipairs(all) do
    there[name] = name
    lower[name:lower()] = lower[name:lower()] or name
  end
  local found = known(function(name) return lower[name] end)
  if given.text then
    found.text, found.pair = nil, nil -- if the caller names the text, a known name is no second text
  end
  for _, role in ipairs { "text", "pair", "label" } do
    local name = given[role]
    if type(name) == "string" then
      found[role] = there[name] or lower[name:lower()]
      if not found[role] then
        fail(path, line, "there is no column '%s' (%s%s), only %s", name, given.called, role, names_of(all))
      end
    end
  end
  return found
end

---- Of fields ---------------------------------------------------------------------------------------------------------

-- The finite decimal number in a text; nil or false if the text is not one.
local function number(text)
  local value = text:match "^%s*[-+]?%.?%d[%d.eE+-]*%s*$" and tonumber(text)
  return value and value - value == 0 and value
end

-- The shapes of tables without a header.
local SHAPES = {
  {
    name = "STS-B (score in column 5, texts in 6 and 7)", text = 6, pair = 7, label = 5, most = 1e9,
    fits = function(f) return #f >= 7 and number(f[5]) end,
  },
  {
    name = "CoLA (label in column 2, text in 4)", text = 4, label = 2,
    fits = function(f) return #f == 4 and (f[2] == "0" or f[2] == "1") and #f[3] <= 4 end,
  },
  {
    name = "text, text, label or score", text = 1, pair = 2, label = 3,
    fits = function(f) return #f == 3 and f[3] ~= "" end,
  },
  {
    name = "text, label", text = 1, label = 2,
    fits = function(f) return #f == 2 and f[2] ~= "" end,
  },
}

local function shape_of(row, path, delimiter, given)
  for _, shape in ipairs(SHAPES) do
    if shape.fits(row) then
      return shape
    end
  end
  local d = delimiter == "\t" and "TAB" or "COMMA"
  fail(path, row.line, "has %d %s-separated fields%s: %s; expected text %s label, text %s text %s score, STS-B's seven, or a "
    .. "header with names such as text and label; %s say which columns they are", #row, d:lower(),
    row[#row] == "" and ", the last one empty" or "", names_of(row), d, d, d, roles_of(given))
end

local function index_of(row, name)
  for i, field in ipairs(row) do
    if field == name then
      return i
    end
  end
end

-- Sets the columns of a shape for which options give a number.
local function by_number(shape, row, given, path)
  for _, role in ipairs { "text", "pair", "label" } do
    local column = given[role]
    if type(column) == "number" then
      if column % 1 ~= 0 or column < 1 or column > #row then
        fail(path, row.line, "%s%s is %s, expected the number of a column, 1 to %d", given.called, role, pgee.describe(column),
          #row)
      end
      shape[role] = column
    end
  end
  if not shape.text then
    fail(path, row.line, "expected %stext, too: there is no header with a name such as text", given.called)
  end
  return shape
end

local ROLES = { "text", "pair", "label" }

local KNOWN = {} -- all known names of columns, in lower case
for _, list in ipairs { TEXTS, LABELS, unpack(PAIRS) } do
  for _, name in ipairs(list) do
    KNOWN[name] = true
  end
end

-- Whether a column has numbers in all rows except the first, whose field is therefore its name.
local function is_named_number(list, column)
  for i = 2, #list do
    if not number(list[i][column] or "") then
      return false
    end
  end
  return #list > 1 and list[1][column] ~= nil and not number(list[1][column])
end

-- Whether the first row is a header, if options give columns by number: one of these columns has a known name there, or the label
-- is a number in every other row.
local function names_columns(list, given)
  for _, role in ipairs(ROLES) do
    local field = type(given[role]) == "number" and list[1][given[role]]
    if field and KNOWN[field:lower()] then
      return true
    end
  end
  return type(given.label) == "number" and is_named_number(list, given.label)
end

-- The shape of a table whose first row is a header.
local function of_header(list, given, path)
  local first = list[1]
  local found = by_name(first, given, path, first.line)
  local shape = { name = "the header's columns", width = #first }
  for role, name in pairs(found) do
    shape[role] = index_of(first, name)
  end
  by_number(shape, first, given, path)
  shape.consensus = shape.label and first[shape.label]:lower() == "gold_label"
  return shape
end

-- The shape of a table, and the index of its first row of data.
local function shape_and_start(list, given, path, delimiter)
  local first, named, numbered = list[1], false, false
  for _, role in ipairs(ROLES) do
    named, numbered = named or type(given[role]) == "string", numbered or type(given[role]) == "number"
  end
  local lower = {}
  for _, field in ipairs(first) do
    lower[field:lower()] = field
  end
  local found = known(function(name) return lower[name] end)
  if named or (found.text and (found.label or found.pair or given.label)) then
    return of_header(list, given, path), 2
  elseif numbered then
    local header = given.header or names_columns(list, given)
    return by_number({ name = "the columns that are asked for", width = header and #first or nil }, first, given, path),
      header and 2 or 1
  elseif given.header then
    return shape_of(list[2] or first, path, delimiter, given), 2
  end
  local shape = shape_of(first, path, delimiter, given)
  if is_named_number(list, shape.label) then
    fail(path, first.line, "looks like a header, but none of its names is known: %s; %s name the columns, and with %sheader the "
      .. "places of the columns decide", names_of(first), roles_of(given), given.called)
  end
  return shape, 1
end

---- Sets --------------------------------------------------------------------------------------------------------------

-- A new set, and a function that adds a row to it. The labels of pairs are scores if the first label is a number; then every
-- label must be a number.
local function collector(path, name, uses)
  local set = { path = path, form = name, texts = {}, labels = {}, skipped = 0, uses = uses }
  local function add(line, text, pair, label)
    if label == "" then
      fail(path, line, "the label is empty")
    elseif label ~= nil and #set.texts == 0 then
      if pair and not number(label) and tonumber(label) then -- "nan", "inf", "0x1": a number, but no score
        fail(path, line, "expected a label or a finite score, found '%s'", label)
      end
      set.kind = pair and number(label) and "score" or "label"
    end
    if set.kind == "score" then
      label = label ~= nil and number(label)
        or fail(path, line, "expected a score as in the lines before, found '%s'", tostring(label))
    end
    local i = #set.texts + 1
    set.texts[i], set.labels[i] = pair and { text, pair } or text, label
  end
  return set, add
end

local function finish(set, path)
  if #set.texts == 0 then
    error(path .. ": no lines to evaluate on", 0)
  end
  set.kind = set.kind or "text"
  return set
end

--- The set of a table, a list of rows of fields. given: the options text, pair and label (names in the header, or numbers of
-- columns), header (the first row is a header, even if none of its names is known) and called (the prefix of options in errors).
function columns.of_fields(list, given, path, delimiter)
  if #list == 0 then
    error(path .. ": no lines to evaluate on", 0)
  end
  local shape, start = shape_and_start(list, given, path, delimiter)
  local set, add = collector(path, shape.name, { text = true, pair = true, label = true, header = true })
  for i = start, #list do
    local row = list[i]
    local fits = shape.fits and shape.fits(row) or shape.width == #row
    if not shape.fits and not shape.width then
      fits = #row >= math.max(shape.text or 1, shape.pair or 1, shape.label or 1)
    end
    if not fits then
      local option = given.called and given.called .. "as text" or 'as = "text"'
      local plain = given.plain and "; if its lines are plain texts, " .. option
      fail(path, row.line, "has %d fields, expected %s as in the lines before%s", #row,
        shape.width and shape.width .. ", " .. shape.name or shape.name, plain or "")
    elseif shape.consensus and row[shape.label] == "-" then
      set.skipped = set.skipped + 1 -- annotators did not agree
    else
      add(row.line, row[shape.text], shape.pair and row[shape.pair], shape.label and row[shape.label] or nil)
    end
  end
  return finish(set, path)
end

local function text_of(object, key, path, line)
  local value = object[key]
  if type(value) ~= "string" then
    fail(path, line, "%s is %s, expected a text", key, json.describe(value))
  end
  return value
end

local function label_of(object, key, path, line)
  local value = object[key]
  if type(value) == "number" or type(value) == "boolean" then
    return type(value) == "number" and ("%.14g"):format(value) or value and "1" or "0"
  end
  return text_of(object, key, path, line)
end

--- The set of a list of { object = table, line = }.
function columns.of_objects(list, given, path)
  local set, add = collector(path, "JSON", { text = true, pair = true, label = true })
  local found
  for _, row in ipairs(list) do
    if not found then
      local names = options.names(row.object)
      found = by_name(names, given, path, row.line)
      if not found.text then
        fail(path, row.line, "there is no text among %s; %stext names it", names_of(names), given.called)
      end
    end
    local label = found.label and label_of(row.object, found.label, path, row.line)
    if label == "-" and found.label == "gold_label" then
      set.skipped = set.skipped + 1
    else
      add(row.line, text_of(row.object, found.text, path, row.line),
        found.pair and text_of(row.object, found.pair, path, row.line), label)
    end
  end
  return finish(set, path)
end

return columns
