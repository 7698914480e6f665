--- Inputs: reads and writes inputs of fuzzing, and decides whether a driver's result for an input is a fault.
local inputs = {}

--- A file's bytes.
function inputs.read(path)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  return bytes
end

--- Whether there is a file of that name.
function inputs.exists(path)
  local file = io.open(path, "rb")
  return file ~= nil and file:close()
end

function inputs.write(path, bytes)
  local file = assert(io.open(path, "wb"))
  assert(file:write(bytes))
  assert(file:close())
end

--- The inputs in spec/fuzz/corpus/NAME in the order of their names: a list of { path =, bytes = }.
function inputs.corpus(name)
  local list = {}
  local pipe = assert(io.popen(("ls spec/fuzz/corpus/%s/* 2> /dev/null"):format(name)))
  for path in pipe:lines() do
    list[#list + 1] = { path = path, bytes = inputs.read(path) }
  end
  pipe:close()
  return list
end

local OWN = {
  "%.lua:%d+: attempt to ", "lua/perigee/[^:]*%.lua:%d+: ", "bad argument #%d", "stack overflow", "cannot convert",
  "not enough memory",
}

--- The reason why a message is unfit for users, or nil: it is not a text, or it names a line of Perigee.
function inputs.unsound(message)
  if type(message) ~= "string" then
    return "an error that is " .. type(message)
  end
  for _, pattern in ipairs(OWN) do
    if message:find(pattern) then
      return message
    end
  end
end

--- Runs a driver on an input. Returns a description of the fault, or nil. A driver's run(input) returns the same.
function inputs.judge(driver, input)
  local ok, why = xpcall(function() return driver.run(input) end, function(message)
    local bad = inputs.unsound(message)
    return bad and (os.getenv "PERIGEE_TRACE" and debug.traceback(bad, 2) or bad) or false
  end)
  return why or not ok and why or nil
end

return inputs
