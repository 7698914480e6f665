--- Models: where specs find checkpoints and texts, and which of them this machine has.
local models = {}

--- spec/golden/checkpoints: small, random, in the repo (spec/golden/make_models.py says what is special about each).
models.small = { "gelu", "gelu-new", "gelu-tanh", "relu", "tiny", "long", "denormals", "embedder", "pairs", "regression" }

function models.path(name)
  return "spec/golden/checkpoints/" .. name
end

function models.exists(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

--- The demo's checkpoint, or nil and how to get it.
function models.demo()
  local path = "build/demo/all-MiniLM-L6-v2"
  if models.exists(path .. "/model.safetensors") then
    return path
  end
  return nil, "the demo model is not here; `make demo` fetches it"
end

--- The folder of public data sets beside a working copy, or nil and why.
function models.shared()
  local path = os.getenv "PERIGEE_SHARED" or "../shared"
  if models.exists(path .. "/data/README.md") then
    return path
  end
  return nil, "there is no ../shared"
end

--- A fine-tuned checkpoint of ../shared, laid out as one folder in build/checkpoints; or nil and why.
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

--- The first `count` lines of a text file, or all.
function models.texts(path, count)
  local list = {}
  for line in io.lines(path) do
    if count and #list == count then
      break
    end
    list[#list + 1] = line
  end
  return list
end

--- `count` inputs { ids = } of lengths that vary up to `longest`, for a vocabulary; the same on every machine.
function models.random_inputs(count, longest, vocabulary, seed)
  local state = seed or 1
  local function random(n)
    state = (state * 1103515245 + 12345) % 2 ^ 31 -- below 2^53 throughout: exact in doubles
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

--- An empty folder of its own; models.remove deletes it with what is in it.
function models.folder()
  local pipe = assert(io.popen "mktemp -d")
  local path = pipe:read "*l"
  pipe:close()
  return path
end

function models.remove(path)
  assert(path:match "^/tmp/", path)
  os.execute("rm -r '" .. path .. "'")
end

--- A copy of a checkpoint's folder with changed files: { file name = its text, or false to leave it out }.
function models.variant(path, changes)
  local to = models.folder()
  assert(os.execute(("cp -rL '%s/.' '%s'"):format(path, to)) == 0)
  for name, text in pairs(changes) do
    os.remove(to .. "/" .. name)
    if text then
      local file = assert(io.open(to .. "/" .. name, "wb"))
      file:write(text)
      file:close()
    end
  end
  return to
end

return models
