--- Formats: files of data sets that are not tables. Each reader takes a file's text, or its decoded JSON, and returns a set
-- (evaluate/read.lua). Errors name the file and the line, or the question.
local json = require "perigee.base.json"
local options = require "perigee.options"
local rows = require "perigee.evaluate.rows"
local fail = rows.fail

local formats = {}

local function new_set(path, kind, form)
  return { path = path, kind = kind, form = form, texts = {}, labels = {}, skipped = 0 }
end

local function add(set, text, label)
  set.texts[#set.texts + 1], set.labels[#set.labels + 1] = text, label
end

---- Questions ---------------------------------------------------------------------------------------------------------

local function need(value, kind, path, what)
  if type(value) ~= kind then
    local expected = kind == "table" and "a list or an object" or "a text"
    error(("%s: %s is %s, expected %s"):format(path, what, json.describe(value), expected), 0)
  end
  return value
end

-- The reference answers of a question: an empty list if the question has no answer.
local function references(qa, path, what)
  if qa.is_impossible == true then
    return {}
  end
  local list, answers = {}, qa.answers or qa.answer
  if type(answers) == "string" then
    return { answers }
  end
  if type(answers) == "table" and type(answers.text) == "table" then
    answers = answers.text -- { text = { ... }, answer_start = { ... } }
  end
  for i, answer in ipairs(need(answers, "table", path, what .. ": answers")) do
    list[i] = type(answer) == "string" and answer
      or need(type(answer) == "table" and answer.text or nil, "string", path, what .. ": the text of an answer")
  end
  return list
end

-- An error if no question has an answer, because the answers were removed from the file. marked: whether a question is marked as
-- one without an answer.
local function check_answers(set, marked)
  for _, list in ipairs(set.labels) do
    for _, answer in ipairs(list) do
      marked = marked or answer ~= ""
    end
  end
  if not marked then
    error(set.path .. ": none of its questions has an answer to judge by", 0)
  end
  return set
end

--- SQuAD's form, 1.1 or 2.0: { "data": [{ "paragraphs": [{ "context", "qas": [{ "question", "answers" }] }] }] }.
function formats.squad(object, path)
  local set, marked = new_set(path, "qa", "SQuAD"), false
  for a, article in ipairs(need(object.data, "table", path, "data")) do
    need(article, "table", path, ("data[%d]"):format(a))
    for p, paragraph in ipairs(need(article.paragraphs, "table", path, ("data[%d]: paragraphs"):format(a))) do
      local where = ("data[%d].paragraphs[%d]"):format(a, p)
      need(paragraph, "table", path, where)
      local context = need(paragraph.context, "string", path, where .. ": context")
      for q, qa in ipairs(need(paragraph.qas, "table", path, where .. ": qas")) do
        need(qa, "table", path, where .. (".qas[%d]"):format(q))
        local what = type(qa.id) == "string" and "question " .. qa.id or where .. (".qas[%d]"):format(q)
        marked = marked or qa.is_impossible == true
        local question = need(qa.question, "string", path, what .. ": question")
        add(set, { question = question, context = context }, references(qa, path, what))
      end
    end
  end
  return check_answers(set, marked)
end

--- A list of { object = { "question", "context", "answers" or "answer" }, line = }.
function formats.questions(list, path)
  local set, marked = new_set(path, "qa", "questions"), false
  for _, row in ipairs(list) do
    local qa, what = row.object, "line " .. row.line
    marked = marked or qa.is_impossible == true
    add(set, {
      question = need(qa.question, "string", path, what .. ": question"),
      context = need(qa.context, "string", path, what .. ": context"),
    }, references(qa, path, what))
  end
  return check_answers(set, marked)
end

---- Words and tags ----------------------------------------------------------------------------------------------------

local function word_and_tag(line)
  if line:find("\t", 1, true) then
    return line:match "^([^\t]*)\t", line:match "\t([^\t]*)$"
  end
  return line:match "^(%S+)%s", line:match "%s(%S+)%s*$"
end

local function is_tag(tag)
  return tag == "O" or tag:match "^[BIESLUM]%-%S+$" ~= nil
end

--- Whether a text looks like one word and its tag a line.
function formats.is_conll(text)
  local seen = 0
  for n, line in rows.lines(text) do
    local word, tag = word_and_tag(line)
    if word and tag and is_tag(tag) then
      seen = seen + 1
    elseif line:find "%S" then
      return false
    end
    if n >= 50 then
      break
    end
  end
  return seen > 0
end

--- One word a line, its tag in the last column, separated by tabs or spaces; an empty line ends a sentence.
function formats.conll(text, path)
  local set, words, tags = new_set(path, "tags", "one word a line"), {}, {}
  local function flush()
    if #words > 0 then
      add(set, { words = words }, tags)
      words, tags = {}, {}
    end
  end
  for n, line in rows.lines(text) do
    if not line:find "%S" then
      flush()
    elseif not line:find "^%-DOCSTART%-" then
      local word, tag = word_and_tag(line)
      if not word or not tag or tag == "" then
        fail(path, n, "expected a word and its tag, separated by a tab or a space, found '%s'", line:sub(1, 40))
      end
      words[#words + 1], tags[#tags + 1] = word, tag
    end
  end
  flush()
  return set
end

--- A list of { object = { "tokens" or "words", "tags" or "ner_tags" }, line = }, tags as texts.
function formats.tagged(list, path)
  local set = new_set(path, "tags", "words and tags")
  for _, row in ipairs(list) do
    local o = row.object
    local words, tags = o.tokens or o.words, o.tags or o.ner_tags
    if type(words) ~= "table" or type(tags) ~= "table" or #words ~= #tags then
      local function many(given)
        return type(given) == "table" and #given or json.describe(given)
      end
      fail(path, row.line, "expected as many tags as words, found %s and %s", many(tags), many(words))
    end
    for i, tag in ipairs(tags) do
      if type(tag) ~= "string" or type(words[i]) ~= "string" then
        fail(path, row.line, "word %d and its tag are %s and %s, expected texts", i, json.describe(words[i]), json.describe(tag))
      end
    end
    add(set, { words = words }, tags)
  end
  return set
end

---- Labels ------------------------------------------------------------------------------------------------------------

-- Latin-1 as UTF-8.
local function from_latin1(text)
  return (text:gsub("[\128-\255]", function(char)
    local c = char:byte()
    return string.char(c < 0xC0 and 0xC2 or 0xC3, c < 0xC0 and c or c - 0x40)
  end))
end

--- Whether a text looks like TREC's questions.
function formats.is_trec(text)
  return text:find "^%u%u+:%l+ [^\t\n]+\n" ~= nil
end

--- TREC's questions, "LABEL:fine question", in Latin-1. label: "coarse" (default) or "fine".
function formats.trec(text, path, given)
  local set = new_set(path, "label", "TREC")
  set.uses = { label = true }
  for n, line in rows.lines(text) do
    local coarse, fine, question = line:match "^(%u+):(%l+) (.+)$"
    if not coarse then
      fail(path, n, "expected LABEL:fine question, found '%s'", line:sub(1, 40))
    end
    add(set, from_latin1(question), given.label == "fine" and coarse .. ":" .. fine or coarse)
  end
  return set
end

--- CLINC's form, { "test": [[text, label]...], ... }. given.part: which of the lists; "test", or "train" if texts are wanted.
function formats.parts(object, path, given)
  local part = given.part or given.plain and object.train and "train" or "test"
  if type(object[part]) ~= "table" then
    local names = options.names(object)
    error(("%s has no part '%s', only %s (%spart)"):format(path, part, table.concat(names, ", "), given.called), 0)
  end
  local set = new_set(path, "label", "parts of text and label")
  set.uses = { part = true }
  for i, row in ipairs(object[part]) do
    if type(row) ~= "table" or type(row[1]) ~= "string" or type(row[2]) ~= "string" then
      error(("%s: %s[%d] is %s, expected a text and its label"):format(path, part, i, json.describe(row)), 0)
    end
    add(set, row[1], row[2])
  end
  return set
end

local function list_of(text)
  local list = {}
  for _, line in rows.lines(text) do
    list[#list + 1] = line
  end
  return list
end

--- Files side by side: of texts, of labels, and of second texts between them if there are three.
function formats.parallel(texts, paths)
  local set, lists = new_set(paths[1], "label", "lines of several files"), {}
  for i, text in ipairs(texts) do
    lists[i] = list_of(text)
    if #lists[i] ~= #lists[1] then
      error(("%s has %d lines and %s %d, expected as many"):format(paths[1], #lists[1], paths[i], #lists[i]), 0)
    end
  end
  for i, text in ipairs(lists[1]) do
    local label = lists[#lists][i]
    if label == "-" then
      set.skipped = set.skipped + 1
    else
      add(set, #lists == 3 and { text, lists[2][i] } or text, label)
    end
  end
  return set
end

--- Each line a text, without labels.
function formats.text(text, path)
  local set = new_set(path, "text", "one text a line")
  for _, line in rows.lines(text) do
    if line ~= "" then
      add(set, line)
    end
  end
  return set
end

return formats
