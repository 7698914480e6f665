--- Vocabulary files without a tokenizer.json: vocab.txt, or vocab.json with merges.txt. Both functions return
-- { vocab = ids by pieces, merges = nil or list of "a b", path = for errors }.
local foreign = require "perigee.base.foreign"
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local fail = read.fail

local vocabularies = {}

-- ---- vocab.txt ------------------------------------------------------------------------------------------------------------

-- The text of a vocabulary file. Any line is a valid piece, so only these two beginnings show that a file is of another kind.
local function text_of(path)
  local text, why = json.text(path)
  if text and (text:find "^version https://git%-lfs" or text:find "^%s*<!DOCTYPE") then
    fail("'%s' is no vocabulary%s", path, foreign.hint(path))
  end
  return text or fail("%s", why)
end

-- Patterns of Unicode's white space outside ASCII, in UTF-8, at the end of a line.
local SPACES = { "\194[\133\160]$", "\225\154\128$", "\226\128[\128-\138\168\169\175]$", "\226\129\159$", "\227\128\128$" }

-- A line without the white space at its end. It removes what Rust's trim_end removes, because tokenizers calls that.
local function trimmed(line)
  local text = line:gsub("%s+$", "")
  for _, space in ipairs((text:byte(-1) or 0) >= 128 and SPACES or {}) do
    local short = text:gsub(space, "")
    if short ~= text then
      return trimmed(short)
    end
  end
  return text
end

--- Reads a vocab.txt: one piece a line, ids from 0. If two lines are equal, the piece has the id of the last.
function vocabularies.lines(path)
  local text, vocab, id = text_of(path), {}, 0
  for line in (text:sub(-1) == "\n" and text or text .. "\n"):gmatch "([^\n]*)\n" do
    vocab[trimmed(line)] = id
    id = id + 1
  end
  return { vocab = vocab, path = path }
end

-- ---- vocab.json and merges.txt --------------------------------------------------------------------------------------------

-- The lines of a merges.txt, two pieces each. tokenizers skips lines that begin with #version.
local function read_merges(path)
  local merges = {}
  for line in (text_of(path):gsub("\r\n", "\n") .. "\n"):gmatch "([^\n]*)\n" do
    if line ~= "" and line:sub(1, 8) ~= "#version" then
      merges[#merges + 1] = line
    end
  end
  return merges
end

--- Reads a vocab.json, an object of ids by pieces, and its merges.txt. files: c.files of a checkpoint.
function vocabularies.pairs(files)
  local vocab = json.object(files.pieces)
  for piece, id in pairs(vocab) do
    read.integer(id, files.pieces, "the id of '%s'", piece)
  end
  return { vocab = vocab, merges = read_merges(files.merges), path = files.pieces }
end

return vocabularies
