--- Golden: what the reference library computed of a checkpoint. spec/golden/make_models.py says what is in values.safetensors.
local cjson = require "cjson"
local compare = require "spec.support.compare"
local models = require "spec.support.models"
local safetensors = require "perigee.safetensors"

local golden = {}

--- The sequences of a folder, a list of { ids =, types =, rows = those that are kept, get = function(what), a tensor or nil, and
-- text = where texts.json has one }.
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

--- The kept rows of sequence i, s, of a batch in a tensor of all its tokens.
function golden.rows(tensor, batch, i, s)
  local rows = {}
  for j, row in ipairs(s.rows) do
    rows[j] = batch.starts[i - 1] + row
  end
  return compare.rows(tensor, rows)
end

--- Puts the embeddings and every layer of sequence i, s, beside the reference's in a report of spec.support.compare.
function golden.compare_layers(report, layers, batch, i, s)
  for j, layer in ipairs(layers) do
    local what = j == 1 and "embedding" or "layer." .. (j - 2)
    report:stage(what, golden.rows(layer, batch, i, s), s.get(what))
  end
end

--- The sequences as inputs.
function golden.ids(sequences)
  local inputs = {}
  for i, s in ipairs(sequences) do
    inputs[i] = { ids = s.ids, types = s.types }
  end
  return inputs
end

return golden
