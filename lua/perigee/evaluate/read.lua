--- Read: labelled files as a set on which models are evaluated. The content of a file tells which form it has:
--
--   tables        TSV, CSV (RFC 4180), JSON lines or a JSON list: a text or two, and a label or score (columns.lua)
--   questions     SQuAD's JSON, or objects with question, context and answers
--   words         one word and its tag a line, or objects with tokens and tags
--   retrieval     documents, queries and judgements: Cranfield's files, or JSON lines with a table
--   others        TREC's questions, CLINC's parts, files side by side such as SNLI's s1, s2 and labels
--
-- A set: { path =, kind = "label", "score", "text", "qa", "tags" or "retrieval", form = the form in words, texts = { input of a
-- model... }, labels = { right answer... }, skipped = the number of rows whose annotators did not agree }.
local columns = require "perigee.evaluate.columns"
local files = require "perigee.evaluate.files"
local formats = require "perigee.evaluate.formats"
local json = require "perigee.base.json"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local retrieval = require "perigee.evaluate.retrieval"
local rows = require "perigee.evaluate.rows"

local KNOWN = {
  as = true, text = true, pair = true, label = true, part = true, header = true, limit = true, first = true, plain = true,
  contents = true, called = true,
}

---- JSON --------------------------------------------------------------------------------------------------------------

local function of_objects(list, given, path)
  local first = list[1].object
  if first.question ~= nil and first.context ~= nil and not given.text then
    return formats.questions(list, path)
  elseif (first.tokens ~= nil or first.words ~= nil) and not given.text then
    return formats.tagged(list, path)
  end
  return columns.of_objects(list, given, path)
end

-- The set of objects that have a query and its lists of positive and negative passages: a row for each passage.
local function of_candidates(list, path)
  local pairs_of = {}
  for _, row in ipairs(list) do
    for relevance = 0, 1 do
      local passages = row.object[relevance == 1 and "positive" or "negative"]
      for _, passage in ipairs(type(passages) == "table" and passages or {}) do
        pairs_of[#pairs_of + 1] = {
          object = { query = row.object.query, passage = passage, relevance = relevance }, line = row.line,
        }
      end
    end
  end
  local set = columns.of_objects(pairs_of, { called = "" }, path)
  set.uses = nil
  return set
end

local function of_json_rows(list, given, path)
  if #list == 0 then
    error(path .. ": no lines to evaluate on", 0)
  elseif list[1].object.query ~= nil and list[1].object.positive ~= nil then
    return of_candidates(list, path)
  end
  return of_objects(list, given, path)
end

-- Whether an object holds nothing but lists of lists.
local function has_parts(value)
  for _, list in pairs(value) do
    if type(list) ~= "table" or type(list[1]) ~= "table" then
      return false
    end
  end
  return true
end

local function of_json(value, given, path)
  local squad = type(value.data) == "table"
  if next(value) == nil or squad and next(value.data) == nil then
    error(path .. ": no lines to evaluate on", 0)
  elseif squad and value.data[1] ~= nil then
    return formats.squad(value, path)
  elseif #value == 0 and has_parts(value) then
    return formats.parts(value, path, given)
  elseif #value == 0 then
    value = { value }
  end
  local list = {}
  for i, object in ipairs(value) do
    if type(object) ~= "table" then
      error(("%s: entry %d is %s, expected an object"):format(path, i, json.describe(object)), 0)
    end
    list[i] = { object = object, line = i }
  end
  return of_json_rows(list, given, path)
end

local function decoded(text)
  local ok, value = pcall(json.decode, text)
  return ok and type(value) == "table" and value or nil
end

---- One file ----------------------------------------------------------------------------------------------------------

local READ = {
  tsv = function(text, path, given) return columns.of_fields(rows.tabs(text, path), given, path, "\t") end,
  csv = function(text, path, given) return columns.of_fields(rows.quoted(text, ",", path), given, path, ",") end,
  jsonl = function(text, path, given) return of_json_rows(rows.jsonl(text, path), given, path) end,
  json = function(text, path, given)
    local value = decoded(text)
    if not value then
      error(("%s is not valid JSON: %s"):format(path, select(2, pcall(json.decode, text))), 0)
    end
    return of_json(value, given, path)
  end,
  conll = formats.conll, trec = formats.trec, text = formats.text,
}

local function name_of(path)
  return path:match "[^/]*$":lower()
end

-- The form that a text has, a key of READ.
local function form_of(text, path, given)
  local line = text:match "^[^\r\n]*"
  if text:find "^%s*[{%[]" then
    if decoded(text) then
      return "json"
    elseif decoded(line) then
      return "jsonl"
    elseif name_of(path):find "%.jsonl?$" then
      return name_of(path):match "%.(jsonl?)$" -- the reader of this form then says where the text is malformed
    end
  end
  if formats.is_conll(text) then
    return "conll"
  elseif line:find("\t", 1, true) then
    return "tsv"
  elseif name_of(path):find "%.csv$" or (given.plain == nil and line:find(",", 1, true) and given.text) then
    return "csv"
  elseif formats.is_trec(text) then
    return "trec"
  end
  return given.plain and "text" or "tsv"
end

local function read_file(text, path, given)
  return READ[given.as or form_of(text, path, given)](text, path, given)
end

---- Several -----------------------------------------------------------------------------------------------------------

-- Sets one after another.
local function join(sets)
  local all = sets[1]
  for i = 2, #sets do
    local set = sets[i]
    if set.kind ~= all.kind then
      error(("%s has %s and %s has %s, expected the same"):format(all.path, all.form, set.path, set.form), 0)
    end
    for k = 1, #set.texts do
      local at = #all.texts + 1
      all.texts[at], all.labels[at] = set.texts[k], set.labels[k]
    end
    all.skipped = all.skipped + set.skipped
  end
  return all
end

-- Only items first to first + limit - 1.
local function cut(set, given)
  local first, last = given.first or 1, (given.first or 1) + (given.limit or math.huge) - 1
  if first == 1 and last >= #set.texts then
    return set
  end
  local texts, labels = {}, {}
  for i = first, math.min(last, #set.texts) do
    texts[#texts + 1], labels[#labels + 1] = set.texts[i], set.labels[i]
  end
  if #texts == 0 then
    error(("%s has %d items, expected one from %d on"):format(set.path, #set.texts, first), 0)
  end
  set.texts, set.labels = texts, labels
  return set
end

-- An error if an option is given that has no effect on files of this form.
local function check_uses(set, given)
  for _, name in ipairs { "text", "pair", "label", "part", "header" } do
    if given[name] and not (set.uses and set.uses[name]) then
      error(("%s: %s%s has no effect on a file of this form (%s)"):format(set.path, given.called, name, set.form), 0)
    end
  end
  return set
end

local function is_retrieval(text)
  return text:find "^%.I" or text:find '^%s*{[^\n]-"_id"'
end

local function read(paths, given)
  local text_of, texts = files.reader(given.contents, given.as), {}
  if #paths == 1 then
    paths = files.set_of(paths[1])
  end
  for i, path in ipairs(paths) do
    texts[i] = text_of(path)
  end
  if given.as == "parallel" or (not given.as and files.side_by_side(paths[1])) then
    if #paths ~= 2 and #paths ~= 3 then
      error(("files side by side are of texts and labels, or of two texts and labels; got %d"):format(#paths), 0)
    end
    return check_uses(formats.parallel(texts, paths), given)
  elseif given.as == "retrieval" or (not given.as and #paths == 3 and (is_retrieval(texts[1]) or is_retrieval(texts[2]))) then
    return check_uses(retrieval.read(texts, paths), given)
  end
  local sets = {}
  for i, path in ipairs(paths) do
    sets[i] = check_uses(read_file(texts[i], path, given), given)
  end
  return join(sets)
end

local function copied(given)
  local copy = {}
  for name, value in pairs(given) do
    copy[name] = value
  end
  return copy
end

local FORMS = { parallel = true, retrieval = true }
for name in pairs(READ) do
  FORMS[name] = true
end

--- read(path, options), or a list of paths. Options:
--   as      what the files are, if not what they look like: tsv, csv, jsonl, json, conll, trec, text, parallel, retrieval
--   text, pair, label   columns, by their names in the header, or by number
--   part    the part of a file that has several: default "test"; with plain "train", if there is one
--   header  true: the first line of a table names its columns, also if none of the names is known
--   limit, first   reads `limit` items, beginning with item `first`
--   plain   whether a file may have texts alone, one a line
--   contents   the texts of files that the caller has already read: { [path] = text }
--   called  the prefix of options' names in errors: "--" on a command line; default ""
-- text, pair, label, part and header are errors for files of a form that does not have them.
return function(paths, given)
  given = copied(options.check(given, KNOWN, "evaluate.read"))
  given.called = options.text(given.called, "evaluate.read: called") or ""
  paths = type(paths) == "table" and paths or { paths }
  if #paths == 0 then
    error("evaluate.read: no path is given, expected that of a file, or several", 0)
  end
  for i = 1, math.max(#paths, 1) do
    local path = paths[i]
    if type(path) ~= "string" then
      error(("evaluate.read: path %d is %s, expected a string"):format(i, pgee.describe(path)), 0)
    end
  end
  if type(given.as) ~= "nil" then
    options.choice(given.as, FORMS, "evaluate.read: as")
  end
  options.integer(given.limit, 1, 2 ^ 53, "evaluate.read: limit")
  options.integer(given.first, 1, 2 ^ 53, "evaluate.read: first")
  options.boolean(given.plain, "evaluate.read: plain")
  options.boolean(given.header, "evaluate.read: header")
  options.text(given.part, "evaluate.read: part")
  for _, role in ipairs { "text", "pair", "label" } do
    if type(given[role]) ~= "number" then
      options.text(given[role], ("evaluate.read: %s"):format(role))
    end
  end
  if type(given.contents) ~= "nil" and type(given.contents) ~= "table" then
    error(("evaluate.read: contents is %s, expected { [path] = text }"):format(pgee.describe(given.contents)), 0)
  end
  local set = cut(read(paths, given), given)
  set.files, set.called = paths, given.called
  return set
end
