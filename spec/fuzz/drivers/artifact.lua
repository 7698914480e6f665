--- Artifacts with right checksums: one part of a saved model is replaced, then the checksums are computed again. An input has a
-- line that names the part, "metadata KEY", "plan HEAD" or "tensor NAME", and then the part's text or bytes. The bytes of a
-- tensor are repeated until the tensor is full.
local ffi = require "ffi"
local artifacts = require "spec.support.artifacts"
local models = require "spec.support.models"
local perigee = require "perigee"
local tensor = require "perigee.tensor"

local driver = { titled = true }
local saved

local function parts_of_one()
  if not saved then
    local model = perigee.load(models.path "bert-heads")
    local path = artifacts.save(model:quantize { activations = "dynamic" })
    saved = artifacts.parts(path)
  end
  local parts = { tensors = {}, metadata = {}, plans = {} }
  for kind, list in pairs(saved) do
    for key, value in pairs(list) do
      parts[kind][key] = value
    end
  end
  return parts
end

function driver.seeds()
  local parts, list = parts_of_one(), {}
  local json = require "perigee.base.json"
  for key, text in pairs(parts.metadata) do
    list[#list + 1] = ("metadata %s\n%s"):format(key, text)
  end
  for head, plan in pairs(parts.plans) do
    for _ = 1, 4 do
      list[#list + 1] = ("plan %s\n%s"):format(head, json.canonical(plan))
    end
  end
  for name in pairs(parts.tensors) do
    list[#list + 1] = ("tensor %s\n\255\255\255\127"):format(name)
  end
  table.sort(list)
  return list
end

local function filled(like, bytes)
  local t = tensor.new(like.dtype, like.shape)
  local to, stride = t:pointer()
  local size = #t * stride * tonumber(ffi.cast("char *", to + 1) - ffi.cast("char *", to))
  local count = math.max(#bytes, 1)
  for at = 0, size - 1, count do
    ffi.copy(ffi.cast("char *", to) + at, bytes, math.min(#bytes, size - at))
  end
  return t
end

local function use(path)
  local a = perigee.open(path, { verify = true })
  tostring(a)
  tostring(a:explain())
  local given = { { ids = { 1, 2, 3 } }, { ids = { 4 } } } -- the model has no tokenizer
  a:embed(given):totable()
  for _, task in ipairs { "classify", "ner", "fill" } do
    pcall(a[task], a, given)
  end
  a:hidden(given):totable()
end

function driver.run(input)
  local kind, key, text = input:match "^(%a+) ([^\n]+)\n(.*)$"
  local parts = parts_of_one()
  if kind == "metadata" then
    parts.metadata[key] = text
  elseif kind == "plan" then
    parts.plans[key] = text
  elseif kind == "tensor" and parts.tensors[key] then
    parts.tensors[key] = filled(parts.tensors[key], text)
  else
    return
  end
  local ok, failure
  artifacts.in_memory(function(path)
    local written = pcall(artifacts.write, parts, path)
    if written then
      ok, failure = pcall(use, path)
    end
  end)
  if ok == false then
    error(failure, 0)
  end
end

return driver
