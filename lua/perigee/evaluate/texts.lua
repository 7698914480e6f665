--- Reads files of inputs to calibrate on: perigee.texts "texts.txt", or a list of files.
--
--   local texts = perigee.texts "texts.txt"                                  -- a list of all inputs
--   local stats = model:calibrate(texts, { samples = 256 })                  -- takes 256 of them, evenly over the file
--
-- A file has one text a line, JSON Lines, or any form of a labelled file (evaluate/read.lua), without its labels. Empty lines of
-- plain texts are skipped. A file that is not UTF-8 is an error with the line and the byte. Options:
--   text, pair   columns of the text and of the second text: their names in the header, or their numbers
--   part         the part of a file that has several; default: "train", if there is one
--   as           the form of the files, if it is not what they look like: text, tsv, csv, jsonl, json, conll, trec
--   single       true: each pair becomes two texts, which is the input of an embedding model
--   without      a set of evaluate.read: its inputs are left out, because the model is evaluated on it
--   contents     the texts of files that the caller has already read: { [path] = text }
--   called       the prefix of options' names in errors: "--" on a command line; default ""
local find = require "perigee.find"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local read = require "perigee.evaluate.read"
local sample = require "perigee.evaluate.sample"

local texts = {}

local KNOWN = {
  text = true, pair = true, part = true, as = true, single = true, without = true, contents = true, called = true,
}

local READ = { "text", "pair", "part", "as", "single" } -- the options that a recipe repeats

local origins = setmetatable({}, { __mode = "k" }) -- by list

--- The origin of a list that perigee.texts returned: { files = their paths as given, paths = their absolute paths, options = the
-- options that change what is read, out = the number of inputs that `without` left out }; nil for another list.
function texts.origin(list)
  return origins[list]
end

local function run(paths, given)
  given = options.check(given, KNOWN, "texts")
  options.boolean(given.single, "texts: single")
  if type(given.without) ~= "nil" and (type(given.without) ~= "table" or type(given.without.texts) ~= "table") then
    error(("texts: without is %s, expected what evaluate.read returned"):format(pgee.describe(given.without)), 0)
  end
  local set = read(paths, {
    text = given.text, pair = given.pair, part = given.part, as = given.as, contents = given.contents, called = given.called,
    plain = true,
  })
  local list, out = sample.candidates(set, given.without, given.single)
  local own, absolute = {}, {}
  for _, name in ipairs(READ) do
    own[name] = given[name]
  end
  for i, path in ipairs(set.files) do
    absolute[i] = find.absolute(path)
  end
  origins[list] = { files = set.files, paths = absolute, options = own, out = out }
  return list
end

return setmetatable(texts, {
  __call = function(_, paths, given)
    local list = pgee.raise(run, paths, given)
    return list
  end,
})
