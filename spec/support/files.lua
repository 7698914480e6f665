--- Files: temporary files and folders, and safetensors files made byte by byte, also malformed ones.
--
--   local path = files.write "bytes"                        -- a new file
--   local dir = files.folder { ["config.json"] = "{}" }     -- a new folder; names may have one '/'
--   local top = files.top()                                 -- the top folder
--   files.clean()                                           -- removes them; call it in after_each
local bit = require "bit"

local files = { made = {} }

--- Writes a file, and returns its path. It is not removed by clean.
function files.put(path, bytes)
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes))
  assert(file:close())
  return path
end

function files.write(bytes)
  local path = os.tmpname()
  table.insert(files.made, path)
  return files.put(path, bytes)
end

--- Runs a bash script. Returns its output (both streams) and its status, which is 124 if it took longer than `seconds`.
function files.bash(script, seconds)
  local process = assert(io.popen(("timeout %d bash '%s' 2>&1; echo \"status $?\""):format(seconds, files.write(script))))
  local text = process:read "*a"
  process:close()
  local output, status = text:match "^(.*)status (%d+)\n$"
  return output, tonumber(status)
end

--- contents: bytes by name.
function files.folder(contents)
  local dir = os.tmpname()
  table.insert(files.made, dir)
  assert(os.remove(dir))
  assert(os.execute("mkdir " .. dir) == 0)
  for name, bytes in pairs(contents) do
    local inner = name:match "^(.*)/"
    if inner then
      assert(os.execute(("mkdir -p %s/%s"):format(dir, inner)) == 0)
    end
    files.put(dir .. "/" .. name, bytes)
  end
  return dir
end

--- Runs a recipe by dofile, and puts back package.path, which recipes change. (Errors name the caller's line only for modules
-- that were loaded by our path.)
function files.recipe(path)
  local modules = package.path
  local result = dofile(path)
  package.path = modules
  return result
end

--- Returns the top folder as one word of the shell. If its path has characters with a meaning in the shell, the result is a link
-- to it.
function files.top()
  local pipe = assert(io.popen "pwd")
  local top = pipe:read "*l"
  pipe:close()
  if top:find "[^%w_/.-]" then
    local link = os.tmpname()
    assert(os.remove(link))
    assert(os.execute(("ln -s '%s' %s"):format(top, link)) == 0)
    table.insert(files.made, link)
    return link
  end
  return top
end

function files.clean()
  for _, path in ipairs(files.made) do
    if not os.remove(path) then
      assert(path:match "^/tmp/[%w_]+$")
      os.execute("rm -rf " .. path)
    end
  end
  files.made = {}
end

--- Returns n as `count` bytes, the lowest first.
function files.little_endian(n, count)
  local bytes = {}
  for i = 1, count do
    bytes[i] = string.char(n % 256)
    n = math.floor(n / 256)
  end
  return table.concat(bytes)
end

--- Returns the bytes of a safetensors file with this header, which may be wrong.
function files.safetensors(header, data)
  return files.little_endian(#header, 8) .. header .. (data or "")
end

--- Returns the bytes of a valid file of a list of { name, dtype, shape, bytes }, in this order. `pad` spaces follow the header:
-- they move the data to another alignment.
function files.pack(tensors, pad)
  local members, data, at = {}, {}, 0
  for i, t in ipairs(tensors) do
    local shape = table.concat(t[3], ",")
    members[i] = ('"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%d,%d]}'):format(t[1], t[2], shape, at, at + #t[4])
    data[i] = t[4]
    at = at + #t[4]
  end
  return files.safetensors("{" .. table.concat(members, ",") .. "}" .. (" "):rep(pad or 0), table.concat(data))
end

--- Returns a generator that gives the same numbers on every machine: random(n) is an integer from 0 to n - 1.
function files.random(seed)
  local state = seed
  return function(n)
    state = bit.bxor(state, bit.lshift(state, 13))
    state = bit.bxor(state, bit.rshift(state, 17))
    state = bit.bxor(state, bit.lshift(state, 5))
    return state % n
  end
end

return files
