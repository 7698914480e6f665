--- Weight files: the safetensors files of a folder, whole or in shards.
local foreign = require "perigee.base.foreign"
local json = require "perigee.base.json"
local read = require "perigee.tokenizer.read"
local safetensors = require "perigee.safetensors"
local fail, join = read.fail, read.join

local M = {}

--- The safetensors file at `path`. An error blames nobody.
function M.open(path)
  local ok, file = pcall(safetensors.open, path)
  return ok and file or fail("%s", file)
end

local CONVERT = [[To convert them, run in that folder, with PyTorch and safetensors installed:
  python3 -c "import glob, torch; from safetensors.torch import save_file; save_file({k: v.clone().contiguous()
    for f in glob.glob('pytorch_model*.bin') for k, v in torch.load(f, map_location='cpu', weights_only=True).items()},
    'model.safetensors', {'format': 'pt'})"]]

local ORIGIN = "Take the checkpoint that it was made from."

-- Usual file names of weights in other formats, and the texts of the errors about them.
local OTHERS = {
  { "pytorch_model.bin", CONVERT }, { "pytorch_model.bin.index.json", CONVERT },
  { "model.onnx", ORIGIN }, { "onnx/model.onnx", ORIGIN }, { "openvino_model.bin", ORIGIN },
  { "tf_model.h5", "To convert them, " .. foreign.TO_SAFETENSORS .. " (from_tf=True)." },
  { "flax_model.msgpack", "To convert them, " .. foreign.TO_SAFETENSORS .. " (from_flax=True)." },
}

--- The error for a folder without model.safetensors, which names the weights of another form that it has.
function M.no_weights(folder)
  for _, other in ipairs(OTHERS) do
    if json.exists(join(folder, other[1])) then
      fail("'%s' has its weights as %s, which is not supported, only model.safetensors. %s", folder, other[1], other[2])
    end
  end
  fail("'%s' has no weights: neither model.safetensors nor model.safetensors.index.json", folder)
end

-- The path of the whole file, or of the index of its shards; nil if there is none.
local function find(folder)
  local file, index = join(folder, "model.safetensors"), join(folder, "model.safetensors.index.json")
  return json.exists(file) and file or nil, json.exists(index) and index or nil
end

--- Whether the folder has weights.
function M.exist(folder)
  local file, index = find(folder)
  return file ~= nil or index ~= nil
end

-- The weight_map of an index, { tensor name = file name }, and the names in order.
local function weight_map(index)
  local map, names = json.object(index).weight_map, {}
  if type(map) ~= "table" then
    fail("'%s': weight_map is %s, expected an object of tensor name: file name", index, json.describe(map))
  end
  for name, shard in pairs(map) do
    if type(name) ~= "string" or type(shard) ~= "string" or shard:find "/" or shard:find "%z" or shard:match "^%.*$" then
      fail("'%s': the shard of tensor '%s' is %s, expected the name of a file in the same folder", index, tostring(name),
        json.describe(shard))
    end
    names[#names + 1] = name
  end
  table.sort(names)
  return map, names
end

-- The shards that the names are in, in the order of the names, each with one of its tensors.
local function shards_of(map, names)
  local list, seen = {}, {}
  for _, name in ipairs(names) do
    if not seen[map[name]] then
      seen[map[name]] = true
      list[#list + 1] = { file = map[name], tensor = name }
    end
  end
  return list
end

local function check_shards(list, folder, index)
  local missing = {}
  for _, shard in ipairs(list) do
    if not json.exists(join(folder, shard.file)) then
      missing[#missing + 1] = ("the shard '%s' of tensor '%s'"):format(shard.file, shard.tensor)
    end
  end
  if #missing > 0 then
    fail("'%s': %s %s missing", index, table.concat(missing, ", "), #missing == 1 and "is" or "are")
  end
end

-- The tensors of the shards. The index names the shard of each tensor; a tensor that the index does not name is ignored.
local function sharded(folder, index)
  local map, names = weight_map(index)
  local list, where, paths, files, has = shards_of(map, names), {}, {}, {}, {}
  check_shards(list, folder, index)
  for i, shard in ipairs(list) do
    paths[i] = join(folder, shard.file)
    files[shard.file], has[shard.file] = M.open(paths[i]), {}
    for _, inside in ipairs(files[shard.file]:names()) do
      has[shard.file][inside] = true
    end
  end
  for _, name in ipairs(names) do
    if not has[map[name]][name] then
      fail("'%s': tensor '%s' should be in '%s', which has no such tensor", index, name, map[name])
    end
    where[name] = files[map[name]]
  end
  return where, names, paths
end

--- Opens the weights of a folder that has some: for each tensor's name its file, the names in order, and the paths of the files.
function M.open_all(folder)
  local path, index = find(folder)
  if not path then
    return sharded(folder, index)
  end
  local file, where = M.open(path), {}
  for _, name in ipairs(file:names()) do
    where[name] = file
  end
  return where, file:names(), { path }
end

return M
