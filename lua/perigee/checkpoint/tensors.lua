--- Tensors: a checkpoint's weights by the names that model definitions use. checkpoint/init.lua describes these names.
--
--   tensors.index(c)            -- opens the weight files of the checkpoint c and fills c.tensors, c.order and c.stored
--   c:names()  c:tensor(name)  c:unused()   -- checkpoint/init.lua has tensors.methods as its methods
local adapter = require "perigee.checkpoint.adapter"
local Config = require "perigee.checkpoint.config"
local definitions = require "perigee.checkpoint.definitions"
local read = require "perigee.tokenizer.read"
local weight_files = require "perigee.checkpoint.weight_files"

local tensors = { methods = {} }

-- Buffers that some versions of transformers saved with the weights.
local BUFFERS = { "position_ids$", "token_type_ids$" }

-- The two names of one tensor: the table of words, and the decoder that is tied to it. Some writers (safetensors' save_model)
-- keep only the name that comes first in the alphabet.
local TABLE, DECODER = "embeddings.word_embeddings.weight", "lm_head.decoder.weight"

-- The name that a model definition uses for a stored tensor, and a distance: if two stored tensors have the same canonical name,
-- the one with the smaller distance is used. Names with the model's prefix are preferred, because in a file with such names a
-- tensor without the prefix belongs to a head or to nothing.
local function canonical(name, prefix)
  local plain, distance = name, 2
  if name:sub(1, #prefix) == prefix then
    plain, distance = name:sub(#prefix + 1), 0
  end
  local modern = plain:gsub("%.gamma$", ".weight"):gsub("%.beta$", ".bias")
  return modern, modern == plain and distance or distance + 1
end

local function is_buffer(name)
  for _, pattern in ipairs(BUFFERS) do
    if name:find(pattern) then
      return true
    end
  end
  return false
end

--- Opens the weight files in self.base. Fills self.tensors ({ [canonical name] = the file, the name in it, the distance }),
-- self.order (the canonical names), self.stored (the stored names without buffers) and self.files.weights (paths).
function tensors.index(self)
  if not weight_files.exist(self.base) then
    definitions.of(Config.new(self.config, self.files.config)) -- an unknown model_type is the more helpful error
    weight_files.no_weights(self.base)
  end
  local where, names, paths = weight_files.open_all(self.base)
  self.files.weights = paths
  local prefix = definitions.prefix(self.config.model_type) .. "."
  self.tensors, self.order, self.stored = {}, {}, {}
  for _, name in ipairs(names) do
    if not is_buffer(name) then
      local short, distance = canonical(name, prefix)
      local known = self.tensors[short]
      self.stored[#self.stored + 1] = name
      if not known then
        self.order[#self.order + 1] = short
      end
      if not known or distance < known.distance then
        self.tensors[short] = { file = where[name], name = name, distance = distance }
      end
    end
  end
  if self.adapter then
    adapter.index(self, function(name) return (canonical(name, prefix)) end)
  end
  if self.config.tie_word_embeddings ~= false then
    self.tensors[TABLE] = self.tensors[TABLE] or self.tensors[DECODER]
  end
end

---- Methods of a checkpoint -------------------------------------------------------------------------------------------

--- The names of all tensors, without prefix and buffers.
function tensors.methods:names()
  return { unpack(self.order) }
end

--- The tensor of that name, a view of the mapped file; nil if there is none. If the tensor has type F64, or an adapter changes
-- it, the result is a new tensor in F32.
function tensors.methods:tensor(name)
  local found = self.tensors[name]
  if not found then
    return nil
  end
  self.asked[found.name] = true
  local ok, t = pcall(found.file.tensor, found.file, found.name)
  if not ok then
    read.fail("%s", t)
  end
  local changed = self.adapter and adapter.merge(self.adapter, name, t)
  return changed or t.dtype == "F64" and t:f32() or t
end

--- The stored names, buffers excluded, of the tensors that no call of tensor has asked for.
function tensors.methods:unused()
  local list = {}
  for _, name in ipairs(self.stored) do
    if not self.asked[name] then
      list[#list + 1] = name
    end
  end
  return list
end

return tensors
