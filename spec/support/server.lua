--- A server for specs: recipes/serve.lua on a free port of 127.0.0.1, and requests to it by curl.
--
--   local s = server.start({ "name=path.safetensors" }, "--workers 2")
--   local answer, status, headers = s:post("/embed", { inputs = "a text" })    -- decoded JSON; raw text if it is none
--   s:stop()
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"

pcall(ffi.cdef, "int kill(int pid, int signal); int usleep(unsigned microseconds);")

local server = {}
local Server = {}
Server.__index = Server

--- Why there can be no server here, or nil.
function server.missing()
  if os.getenv "PERIGEE_HARD" then
    return "nginx has no sanitizers"
  end
  local nginx = io.open "build/deps/nginx/usr/sbin/nginx"
  if nginx then
    nginx:close()
    return nil
  end
  return "there is no nginx with a Lua module; `sh .ci/deps serve` unpacks it"
end

local function shell(command)
  local process = assert(io.popen(command))
  local text = process:read "*a"
  process:close()
  return text
end

-- A port that nothing listens at.
local function free_port()
  return tonumber((shell [[python3 -c 'import socket
s = socket.socket()
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])']]))
end

--- Waits up to `seconds` until f() returns something, and returns that.
function server.wait(seconds, f)
  for _ = 1, seconds * 50 do
    local result = f()
    if result then
      return result
    end
    ffi.C.usleep(20000)
  end
end

--- Starts a server. models: a list of arguments; options: further ones.
function server.start(models, options)
  local s = setmetatable({ port = free_port(), log = files.write "" }, Server)
  s.run = files.folder {}
  assert(os.execute("chmod 700 " .. s.run) == 0)
  local command = "PERIGEE_LIB=$PWD/build/libperigee.so setsid luajit recipes/serve.lua --port %d --run %s %s %s > %s 2>&1 "
    .. "< /dev/null &"
  command = command:format(s.port, s.run, options or "", table.concat(models, " "), s.log)
  s.pid = tonumber((shell(command .. " echo $!")))
  local ready = server.wait(20, function()
    local broken = ffi.C.kill(s.pid, 0) ~= 0 or s:said():find "cannot be opened"
    return broken and "broken" or select(2, s:get "/health") == 200
  end)
  if ready ~= true then
    s:stop()
    error("the server does not start:\n" .. s:said(), 2)
  end
  return s
end

--- What it wrote to standard error.
function Server:said()
  local file = assert(io.open(self.log))
  local text = file:read "*a"
  file:close()
  return text
end

local function read(response)
  local status, rest = response:match "^HTTP/1.1 (%d+).-\r\n(.*)$"
  if not status then
    return nil, 0, {}
  end
  local head, body = rest:match "^(.-\r\n)\r\n(.*)$"
  if status == "100" then
    return read(body)
  end
  local headers = {}
  for name, value in head:gmatch "([^\r\n:]+): ([^\r\n]*)\r\n" do
    headers[name:lower()] = value
  end
  local ok, decoded = pcall(cjson.decode, body)
  return ok and decoded or body, tonumber(status), headers
end

--- Sends a request by curl. options: of curl.
function Server:request(path, options)
  return read(shell(("curl -s -i -m 20 %s 'http://127.0.0.1:%d%s' 2>&1"):format(options or "", self.port, path)))
end

function Server:get(path, options)
  return self:request(path, options)
end

--- body: a table, or a text that is sent as it is.
function Server:post(path, body, options)
  local text = type(body) == "table" and cjson.encode(body) or body
  return self:request(path, ("--data-binary @%s %s"):format(files.write(text), options or ""))
end

--- Sends it a signal and waits until it has ended. Returns whether it has.
function Server:stop(signal)
  ffi.C.kill(self.pid, signal or 15)
  return server.wait(20, function() return ffi.C.kill(self.pid, 0) ~= 0 end)
end

return server
