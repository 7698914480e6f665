--- Artifacts: functions that several specs of saved models use.
local files = require "spec.support.files"
local json = require "perigee.base.json"
local safetensors = require "perigee.safetensors"

local artifacts = {}

--- Returns the path of a new file in a new folder, which files.clean removes.
function artifacts.path()
  return files.folder {} .. "/model.safetensors"
end

--- Saves a model and returns the path.
function artifacts.save(q)
  local path = artifacts.path()
  q:save(path)
  return path
end

local KEYS = { "perigee.format", "perigee.version", "config", "model", "settings", "calibration" }

--- Decodes an artifact into { tensors = { name = tensor }, metadata = { key = text }, plans = { head = table } }.
function artifacts.parts(path)
  local f = safetensors.open(path)
  local parts = { tensors = {}, metadata = {}, plans = {} }
  for _, name in ipairs(f:names()) do
    if name ~= "checksums" and not name:find "%.filler$" then
      parts.tensors[name] = f:tensor(name)
    end
  end
  for _, key in ipairs(KEYS) do
    parts.metadata[key] = f:metadata(key)
  end
  for _, head in ipairs(json.decode(parts.metadata.model).heads) do
    parts.plans[head] = json.decode(f:metadata("plan." .. head))
  end
  return parts
end

--- Calls f with the path of a file in memory. Flushing such a file takes no time, so f may write it hundreds of times.
function artifacts.in_memory(f)
  local pipe = assert(io.popen "mktemp -d -p /dev/shm 2> /dev/null || mktemp -d")
  local folder = pipe:read "*l"
  pipe:close()
  local ok, failure = pcall(f, folder .. "/model.safetensors")
  os.execute("rm -r " .. folder)
  assert(ok, failure)
end

--- Writes parts as a file with right checksums, even if the parts make no valid artifact. The file is `path`, or a new one by
-- default. Returns its path.
function artifacts.write(parts, path)
  local metadata = {}
  path = path or artifacts.path()
  for key, value in pairs(parts.metadata) do
    metadata[key] = value
  end
  for head, plan in pairs(parts.plans) do
    metadata["plan." .. head] = type(plan) == "string" and plan or json.canonical(plan)
  end
  safetensors.write(path, parts.tensors, metadata)
  return path
end

return artifacts
