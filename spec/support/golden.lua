--- Golden: reads what transformers computed from a checkpoint. spec/golden/make_models.py says what is in values.safetensors.
local cjson = require "cjson"
local compare = require "spec.support.compare"
local models = require "spec.support.models"
local safetensors = require "perigee.safetensors"

local golden = {}

--- Returns the sequences of a folder, a list of { ids =, types =, rows =, get =, text = }. `rows` lists the rows whose values are
-- kept. get(what) returns these values as a tensor, or nil. `text` is there if the folder has texts.json.
function golden.read(folder)
  local f = safetensors.open(folder .. "/values.safetensors")
  local known, list = {}, {}
  for _, name in ipairs(f:names()) do
    known[name] = true
  end
  while known[#list .. "/ids"] do
    local prefix = #list .. "/"
    list[#list + 1] = {
      ids = f:tensor(prefix .. "ids"):totable(), types = f:tensor(prefix .. "types"):totable(),
      rows = f:tensor(prefix .. "rows"):totable(),
      get = function(what)
        return known[prefix .. what] and f:tensor(prefix .. what):copy() or nil
      end,
    }
  end
  if models.exists(folder .. "/texts.json") then
    for i, text in ipairs(cjson.decode(models.read(folder .. "/texts.json"))) do
      list[i].text = type(text) == "table" and #text == 1 and text[1] or text
    end
  end
  return list
end

--- Returns the kept rows of the sequence s, number i of a batch, out of a tensor of all tokens of the batch.
function golden.rows(tensor, batch, i, s)
  local rows = {}
  for j, row in ipairs(s.rows) do
    rows[j] = batch.starts[i - 1] + row
  end
  return compare.rows(tensor, rows)
end

--- Adds the embeddings and every layer of the sequence s, number i of a batch, to a report of spec.support.compare.
function golden.compare_layers(report, layers, batch, i, s)
  for j, layer in ipairs(layers) do
    local what = j == 1 and "embedding" or "layer." .. (j - 2)
    report:stage(what, golden.rows(layer, batch, i, s), s.get(what))
  end
end

--- Returns the sequences as inputs of a model.
function golden.ids(sequences)
  local inputs = {}
  for i, s in ipairs(sequences) do
    inputs[i] = { ids = s.ids, types = s.types }
  end
  return inputs
end

return golden
