--- Files: the texts of labelled files, and which files make one set.
--
--   local text_of = files.reader()
--   text_of "dev.tsv"                 -- its text, checked
--   files.set_of "path/to/scifact"    --> { ".../corpus.jsonl", ".../queries.jsonl", ".../qrels/test.tsv" }
local formats = require "perigee.evaluate.formats"
local utf8 = require "perigee.base.utf8"
local json = require "perigee.base.json"

local files = {}

---- Texts -------------------------------------------------------------------------------------------------------------

local function no_utf8(text, bad)
  local before = text:sub(1, bad - 1)
  local _, line = before:gsub("\n", "")
  return (", line %d: byte %d of the line is 0x%02X, which is not UTF-8; expected a text file in UTF-8"):format(line + 1,
    #before:match "[^\n]*$" + 1, text:byte(bad))
end

-- The end of an error message that begins with the path, if a file's text cannot be evaluated on; else nil. latin1: whether the
-- file may be in Latin-1.
local function flaw_of(text, latin1)
  if not text:find "%S" then
    return ": no lines to evaluate on"
  elseif text:find "^\255\254" or text:find "^\254\255" then
    return ": it is UTF-16, expected UTF-8"
  end
  local bad = not latin1 and utf8.malformed(text)
  if bad then
    return no_utf8(text, bad)
  elseif text:find "\r." and not text:find("\n", 1, true) then
    return ": its lines end with CR alone, expected LF or CR LF"
  end
end

--- A function from a path to the file's text, without a byte order mark. It reads each file once, because a pipe can be read only
-- once. contents: texts that the caller has read before, { [path] = text }. as: the form that the caller says the files have.
-- Errors: a file that cannot be read, is empty, or is not UTF-8. TREC's questions alone may be in Latin-1.
function files.reader(contents, as)
  local kept = {}
  return function(path)
    if not kept[path] then
      local text, why = contents and contents[path], nil
      if not text then
        text, why = json.text(path, true)
      end
      if not text then
        error(why, 0)
      end
      kept[path] = text:gsub("^\239\187\191", "")
      local flaw = flaw_of(kept[path], as == "trec" or not as and formats.is_trec(kept[path]))
      if flaw then
        error(path .. flaw, 0)
      end
    end
    return kept[path]
  end
end

---- Sets of several files ---------------------------------------------------------------------------------------------

--- For a file s1.PART next to s2.PART and labels.PART, as InferSent's copy of SNLI has them: these three paths; else nil.
function files.side_by_side(path)
  local folder, name = path:match "^(.*/)([^/]*)$"
  folder, name = folder or "", name or path
  local part = name:match "^s1%.(.+)$"
  if part and json.exists(folder .. "s2." .. part) and json.exists(folder .. "labels." .. part) then
    return { path, folder .. "s2." .. part, folder .. "labels." .. part }
  end
end

-- Documents, queries and judgements in a folder: Cranfield's, with TREC's corrected judgements first, and BEIR's.
local RETRIEVAL = {
  { "cran.all.1400", "cran.qry", "QRelsCorrectedforTRECeval" }, { "cran.all.1400", "cran.qry", "cranqrel" },
  { "corpus.jsonl", "queries.jsonl", "qrels/test.tsv" }, { "corpus.jsonl", "queries.jsonl", "qrels.tsv" },
}

local function retrieval_of(folder)
  for _, names in ipairs(RETRIEVAL) do
    local list = {}
    for i, name in ipairs(names) do
      local path = folder .. "/" .. name
      list[i] = json.exists(path) and path or nil
    end
    if #list == 3 then
      return list
    end
  end
end

--- The files of the set that one path stands for: a folder with a retrieval set, files side by side, or the file itself.
function files.set_of(path)
  return retrieval_of(path) or files.side_by_side(path) or { path }
end

return files
