--- JSON Lines: what recipes/pipe.lua reads. An input has options of the recipe in its first line; the rest is what is read.
-- Each line has an answer, in valid JSON, whatever the line holds.
local artifacts = require "spec.support.artifacts"
local files = require "spec.support.files"
local jsonl = require "perigee.pipe.jsonl"
local models = require "spec.support.models"
local perigee = require "perigee"

local driver = { titled = true }
local artifact

local OPTIONS = {
  "", "--keep all", "--keep id,text --as out", "--lines", "--lines --pair x", "--pair b --keep id",
  "--longest 100", "--scores --keep all", "--long windows", "--long error", "--window 1", "--text a.b --keep a.b",
}

local LINES = {
  '{"id":12345678901234567890,"text":"a\\u00e9"}', '{"text":"a","b":"c","id":{"x":[1,2,{"y":null}]}}',
  '{"text":null}', '{"id":1.5e300,"text":["a","b"]}', "plain text\twith a tab", "", '{"text":"\\ud83d\\ude00 \239\183\186"}',
  '{"a.b":"x","text":""}',
}

function driver.seeds()
  local list = {}
  for _, options in ipairs(OPTIONS) do
    list[#list + 1] = options .. "\n" .. table.concat(LINES, "\n") .. "\n"
    list[#list + 1] = options .. "\n\239\187\191" .. table.concat(LINES, "\r\n", 3)
  end
  return list
end

local function artifact_of_one()
  if not artifact then
    artifact = artifacts.path()
    files.made[#files.made] = nil -- kept while the process lives
    perigee.load(models.path "bert-heads"):quantize({ activations = "dynamic" }):save(artifact)
  end
  return artifact
end

-- Runs the recipe in this process: its status, and what it wrote to standard error.
local function pipe(words)
  local said, exit, stderr, given, path = {}, os.exit, io.stderr, _G.arg, package.path
  local stopped = {}
  _G.arg = words
  rawset(io, "stderr", { write = function(_, ...) said[#said + 1] = table.concat { ... } end, flush = function() end })
  rawset(os, "exit", function(status)
    stopped.status = status
    error(stopped)
  end)
  local ok, failure = pcall(dofile, words[0])
  _G.arg, package.path = given, path
  rawset(io, "stderr", stderr)
  rawset(os, "exit", exit)
  if not ok and failure ~= stopped then
    error(failure, 0)
  end
  return stopped.status or 0, table.concat(said)
end

-- Lines as a reader of text files counts them.
local function count_lines(text)
  local _, ends = text:gsub("\n", "")
  return ends + ((text == "" or text:sub(-1) == "\n") and 0 or 1)
end

function driver.run(input)
  local options, lines = input:match "^([^\n]*)\n(.*)$"
  local folder = files.folder { input = lines or "" }
  local words = { [0] = "recipes/pipe.lua", "--model", artifact_of_one(), "--task", "classify", "--quiet", "--input",
    folder .. "/input", "--output", folder .. "/output" }
  for word in (options or ""):gmatch "%S+" do
    words[#words + 1] = word
  end
  if not lines or options:find "/" or options:find "resume" or options:find "threads" or options:find "help" then
    return files.clean()
  end
  local ok, status, said = pcall(pipe, words)
  local output = io.open(folder .. "/output", "rb")
  local text = output and output:read "*a" or ""
  if output then
    output:close()
  end
  files.clean()
  if not ok then
    error(status, 0)
  elseif status ~= 0 then
    return said:find "%.lua:%d+:" and said or nil
  elseif count_lines(text) ~= count_lines(lines) then
    return ("%d lines of %d are answered"):format(count_lines(text), count_lines(lines))
  end
  for line in text:gmatch "[^\n]*\n" do
    jsonl.read(line:sub(1, -2))
  end
end

return driver
