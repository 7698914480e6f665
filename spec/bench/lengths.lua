--- Prints the lengths in tokens of the texts of a data set, one on each line, for `recipes/bench.lua --lengths` and
-- spec/bench/peers.py.
--
--   luajit spec/bench/lengths.lua CHECKPOINT ../shared/data/stsb/sts-test.csv   each text of the pairs
--   luajit spec/bench/lengths.lua CHECKPOINT ../shared/data/xquad/xquad.en.json 384   questions with contexts, at most 384
--
-- CHECKPOINT is a folder with a tokenizer. Files that end in .json are in SQuAD's format, others in that of the STS benchmark.
package.path = "./lua/?.lua;./lua/?/init.lua;" .. package.path
local json = require "perigee.base.json"
local perigee = require "perigee"
local tokenizer = require("perigee.tokenizer").load(arg[1])
local path, limit = arg[2], tonumber(arg[3] or 512)

local function put(a, b)
  print(#tokenizer:encode(a, b, { max_tokens = limit }).ids)
end

if path:match "%.json$" then
  for _, article in ipairs(json.object(path).data) do
    for _, paragraph in ipairs(article.paragraphs) do
      for _, question in ipairs(paragraph.qas) do
        put(question.question, paragraph.context)
      end
    end
  end
else
  for _, pair in ipairs(perigee.evaluate.read(path).texts) do
    put(pair[1])
    put(pair[2])
  end
end
