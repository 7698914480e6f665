--- Models: where specs find checkpoints and texts, and which of them this machine has.
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"

local models = {}

-- Architectures of which one checkpoint serves every golden spec: it has all heads, and its INT8 digests are compared.
local ARCHITECTURES = { "roberta", "mpnet", "electra" }

--- The small random checkpoints of spec/golden/checkpoints (spec/golden/make_models.py says what each is for).
models.small = {
  "gelu", "gelu-new", "gelu-tanh", "relu", "tiny", "long", "denormals", "embedder", "pairs", "regression", "distilbert", "xlmr",
  unpack(ARCHITECTURES),
}

--- The checkpoints with all heads of an architecture.
models.heads = { "bert-heads", "distilbert-heads", unpack(ARCHITECTURES) }

function models.path(name)
  return "spec/golden/checkpoints/" .. name
end

function models.exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

--- Returns the demo's checkpoint, or nil and how to get it.
function models.demo()
  local path = "build/demo/all-MiniLM-L6-v2"
  if models.exists(path .. "/model.safetensors") then
    return path
  end
  return nil, "the demo model is not here; `make demo` fetches it"
end

--- Returns the folder of public data sets, ../shared, or nil and the reason why not.
function models.shared()
  local path = os.getenv "PERIGEE_SHARED" or "../shared"
  if models.exists(path .. "/data/README.md") then
    return path
  end
  return nil, "there is no ../shared"
end

--- Returns a fine-tuned checkpoint of ../shared, laid out as one folder in build/checkpoints, or nil and the reason why not.
function models.tuned(name)
  local shared, why = models.shared()
  if not shared then
    return nil, why
  end
  local path = "build/checkpoints/" .. name
  if not models.exists(path .. "/config.json") then
    assert(os.execute(("sh '%s/tools/link_checkpoints.sh' build/checkpoints"):format(shared)) == 0)
  end
  return path
end

--- Returns the first `count` lines of a text file that are at most `longest` bytes long (default: any length).
function models.texts(path, count, longest)
  local list = {}
  for line in io.lines(path) do
    if #line <= (longest or #line) then
      list[#list + 1] = line
    end
    if #list == count then
      break
    end
  end
  return list
end

--- Returns `count` inputs { ids = } of different lengths up to `longest`, the same on every machine.
function models.random_inputs(count, longest, vocabulary, seed)
  local state = seed or 1
  local function random(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31
    return math.floor(state / 2 ^ 31 * n)
  end
  local list = {}
  for i = 1, count do
    local ids = {}
    for j = 1, 1 + random(longest) do
      ids[j] = random(vocabulary)
    end
    list[i] = { ids = ids }
  end
  return list
end
-- The digests need this product and sum, which exceed 2^53, to be rounded one after the other. On AArch64, compiled code would
-- fuse them.
jit.off(models.random_inputs, true)

--- Returns a file's bytes.
function models.read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  return bytes
end

--- Returns a copy of a checkpoint's folder with changed files: { name = its bytes, or false to leave it out }. files.clean()
-- removes it.
function models.variant(path, changes)
  local contents = {}
  local pipe = assert(io.popen(("cd '%s' && find . -type f"):format(path)))
  for name in pipe:lines() do
    contents[name:sub(3)] = models.read(path .. "/" .. name)
  end
  pipe:close()
  for name, bytes in pairs(changes) do
    contents[name] = bytes or nil
  end
  return files.folder(contents)
end

--- Returns a copy of a checkpoint with one file of F32 tensors, after f(name, pointer, count) has changed values of each tensor.
function models.edited(path, f)
  local bytes = models.read(path .. "/model.safetensors")
  local data = 8 + ffi.cast("const uint64_t *", bytes)[0]
  local header = cjson.decode(bytes:sub(9, tonumber(data)))
  local copy = ffi.new("char[?]", #bytes)
  ffi.copy(copy, bytes, #bytes)
  for name, t in pairs(header) do
    if t.data_offsets then
      assert(t.dtype == "F32", name)
      local from, to = unpack(t.data_offsets)
      f(name, ffi.cast("float *", copy + data + from), (to - from) / 4)
    end
  end
  return models.variant(path, { ["model.safetensors"] = ffi.string(copy, #bytes) })
end

return models
