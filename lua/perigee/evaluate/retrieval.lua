--- Retrieval: documents, queries and judgements, in Cranfield's form or as JSON lines with a table of judgements.
local json = require "perigee.base.json"
local rows = require "perigee.evaluate.rows"
local fail = rows.fail

local retrieval = {}

---- Cranfield ---------------------------------------------------------------------------------------------------------

-- Records: ".I number", then fields that begin with a line ".T", ".A", ".B" or ".W".
local function records(text, path)
  local list, field = {}, nil
  for n, line in rows.lines(text) do
    local id, name = line:match "^%.I%s+(%d+)%s*$", line:match "^%.([TABW])%s*$"
    if id then
      list[#list + 1] = { id = tostring(tonumber(id)), line = n }
      field = nil
    elseif name and #list > 0 then
      field = {}
      list[#list][name] = list[#list][name] or field
    elseif field then
      field[#field + 1] = line
    elseif line:find "%S" then
      fail(path, n, "expected .I and a number, or a field such as .W, found '%s'", line:sub(1, 40))
    end
  end
  return list
end

local function joined(lines)
  return (table.concat(lines or {}, " "):gsub("%s+", " "):gsub("^ ", ""):gsub(" $", ""))
end

-- A document's text. In most records it begins with the title; in the others the title is put before it.
local function document_text(record)
  local title, body = joined(record.T), joined(record.W)
  return body:sub(1, #title) == title and body or title .. " " .. body
end

---- JSON lines, judgements --------------------------------------------------------------------------------------------

-- The first of these fields that an object has, a text or a number, as a text; nil if it has none of them.
local function field(object, names, path, line)
  for _, name in ipairs(names) do
    local value = object[name]
    if value ~= nil and value ~= json.null then
      if type(value) ~= "string" and type(value) ~= "number" then
        fail(path, line, "%s is %s, expected a text", name, json.describe(value))
      end
      return type(value) == "number" and ("%.14g"):format(value) or value
    end
  end
end

local function of_objects(text, path)
  local list = {}
  for _, row in ipairs(rows.jsonl(text, path)) do
    local id, body = field(row.object, { "_id", "id" }, path, row.line), field(row.object, { "text" }, path, row.line)
    if not id or not body then
      fail(path, row.line, "expected _id and text")
    end
    local title = field(row.object, { "title" }, path, row.line)
    list[#list + 1] = { id = id, text = title and title ~= "" and title .. " " .. body or body, line = row.line }
  end
  return list
end

local CODE = 5 -- cranqrel's codes go from 1 (a complete answer) to 4, and -1 means not relevant; the grade is CODE - code

-- The judgements of a text, a list of { query =, document =, grade =, line = }. A line is "query document grade" if the text
-- has a header, TREC's "query 0 document grade", or cranqrel's "query document code".
local function judgements(text, path)
  local list, header = {}, false
  for n, line in rows.lines(text) do
    local f = {}
    for value in line:gmatch "%S+" do
      f[#f + 1] = value
    end
    local grade = tonumber(f[#f])
    if n == 1 and #f == 3 and not grade then
      header = true
    elseif #f > 0 then
      if (#f ~= 3 and #f ~= 4) or not grade or grade - grade ~= 0 then
        fail(path, n, "expected a judgement: query document grade, or query 0 document grade; found '%s'", line:sub(1, 40))
      end
      list[#list + 1] = {
        query = f[1], document = f[#f - 1], grade = (#f == 4 or header) and grade or grade > 0 and CODE - grade or 0, line = n,
      }
    end
  end
  return list
end

local READ = {
  documents = function(text, path)
    if text:find "^%.I" then
      local list = records(text, path)
      for _, record in ipairs(list) do
        record.text = document_text(record)
      end
      return list
    end
    return of_objects(text, path)
  end,
  queries = function(text, path)
    if text:find "^%.I" then
      local list = records(text, path)
      for i, record in ipairs(list) do
        record.id, record.text = tostring(i), joined(record.W) -- judgements number the queries by their order
      end
      return list
    end
    return of_objects(text, path)
  end,
  judgements = judgements,
}

local function part_of(text, path)
  if text:find "^%.I" then
    return text:find "\n%.T" and "documents" or "queries"
  elseif text:find "^%s*{" then
    return path:match "[^/]*$":lower():find "quer" and "queries" or "documents"
  end
  return "judgements"
end

-- The ids of records, { [id] = true }. An id that occurs twice is an error, because its record would count twice.
local function ids_of(records_of, path)
  local known = {}
  for _, record in ipairs(records_of) do
    if known[record.id] then
      fail(path, record.line, "%s is there twice", record.id)
    end
    known[record.id] = true
  end
  return known
end

--- The set of three files, in any order: documents, queries and judgements. Their content tells them apart; of two files of JSON
-- lines, the one with "quer" in its name has the queries. Returns { documents = { text... }, names = { id... }, texts = {
-- query... }, labels = { { [document id] = grade }... }, ... }. Queries without judgements are left out.
function retrieval.read(texts, paths)
  local parts, from = {}, {}
  for i, text in ipairs(texts) do
    local part = part_of(text, paths[i])
    if parts[part] then
      error(("%s and %s both are %s, expected documents, queries and judgements"):format(from[part], paths[i], part), 0)
    end
    parts[part], from[part] = READ[part](text, paths[i]), paths[i]
  end
  for _, part in ipairs { "documents", "queries", "judgements" } do
    if not parts[part] then
      error(("there are no %s, expected files of documents, queries and judgements; got %s"):format(part,
        table.concat(paths, ", ")), 0)
    end
  end
  local set = { path = from.queries, kind = "retrieval", form = "retrieval", texts = {}, labels = {}, documents = {}, names = {} }
  ids_of(parts.documents, from.documents)
  for i, record in ipairs(parts.documents) do
    set.documents[i], set.names[i] = record.text, record.id
  end
  local of, known = {}, ids_of(parts.queries, from.queries)
  for _, j in ipairs(parts.judgements) do
    if not known[j.query] then
      fail(from.judgements, j.line, "query %s is not in %s", j.query, from.queries)
    end
    of[j.query] = of[j.query] or {}
    of[j.query][j.document] = j.grade
  end
  set.skipped = 0
  for _, record in ipairs(parts.queries) do
    if of[record.id] then
      set.texts[#set.texts + 1], set.labels[#set.labels + 1] = record.text, of[record.id]
    else
      set.skipped = set.skipped + 1
    end
  end
  if #set.texts == 0 then
    error(from.judgements .. ": there are no judgements", 0)
  end
  return set
end

return retrieval
