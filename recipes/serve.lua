#!/usr/bin/env luajit
--- Serves models over HTTP: the endpoints of text-embeddings-inference, OpenAI's embeddings, Cohere's rerank, and more.
--
--   luajit recipes/serve.lua model.safetensors
--   curl 127.0.0.1:8080/embed -d '{"inputs": "a text"}'
--
-- It writes the configuration of nginx, checks it, and becomes nginx, which runs in the foreground until Ctrl-C or SIGTERM (at
-- once) or SIGQUIT (after the requests that are at work). SIGHUP opens the models' files anew.
local here = arg[0]:match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
local common = require "common"
local find = require "perigee.find"
local json = require "perigee.base.json"
local loading = require "loading"
local pgee = require "perigee.ffi"
local process = require "perigee.os.process"
local system = require "perigee.os"
local fail = common.fail

---- Arguments ---------------------------------------------------------------------------------------------------------

local function arguments()
  return common.arguments {
    name = "serve", description = "Serves models over HTTP through nginx.",
    epilog = "MODEL is an artifact, the folder of a checkpoint (quantized as --activations says, into the run folder), or "
      .. "NAME=PATH. Signals: SIGTERM ends at once, SIGQUIT after the requests at work, SIGHUP opens the models' files anew.",
    add = function(parser)
      parser:argument("models", "Models; the first is the default"):args "+"
    end,
    options = common.join({
      { "host", { "text", default = "127.0.0.1", help = "Address to listen at; 0.0.0.0: reached from other machines" } },
      { "port", { "integer", 1, 65535, default = 8080, help = "Port to listen at" } },
      { "workers", { "integer", 1, 256, said = "processor cores divided by --threads", help = "Processes" } },
      { "threads", { "integer", 1, 256, default = 1, help = "Threads of each worker's engine" } },
      { "api_key_file", { "text", argname = "file", help = "File with a key that clients have to send", said = "none" } },
      { "max_body", { "integer", 1024, 2 ^ 30, default = 2 ^ 21, help = "Max bytes of a request" } },
      { "max_pipe_body", { "integer", 1024, 2 ^ 31 - 1, default = 2 ^ 30, help = "Max bytes of a request to /pipe" } },
      { "max_texts", { "integer", 1, default = 10000, help = "Max inputs of a request" } },
      { "max_batch_tokens", { "integer", 1, default = 8192, help = "Tokens that a batch has about" } },
      { "max_queue", { "integer", 1, default = 512, help = "Max requests that wait in a worker; more have status 429" } },
      { "max_connections", { "integer", 64, 1000000, default = 16384, help = "Max open connections of a worker" } },
      { "timeout", { "integer", 1, 86400, default = 60, help = "Seconds after which a request has status 503" } },
      { "user", { "text", argname = "name", help = "If root starts it: the user that workers run as", said = "root" } },
      { "run", { "text", argname = "folder", help = "Folder for nginx's files", said = "a folder of the user's, by the port" } },
      { "log", { "choice", { all = true, errors = true }, default = "errors", help = "all: log each request, as JSON" } },
      { "check", { "flag", help = "Only write the configuration and check it" } },
      { "activations", {
        "choice", { dynamic = true, static = true, f32 = true }, default = "dynamic",
        help = "Of a checkpoint; f32: not quantized",
      } },
      { "calibration", { "text", list = true, path = true, help = "Of a checkpoint: files to calibrate on", said = "none" } },
      "samples",
    }, common.LOADING),
  }
end

---- The run folder ----------------------------------------------------------------------------------------------------

local function write(path, text)
  local file, why = io.open(path, "wb")
  if not file then
    fail("cannot write '%s': %s", path, why)
  end
  local written, problem = file:write(text)
  local closed, other = file:close()
  if not (written and closed) then
    fail("cannot write '%s': %s", path, problem or other)
  end
end

-- The folder for nginx's files, which no other user can read or write.
local function run_folder(args)
  local path = args.run or ("%s/perigee-serve-%d-%d"):format(os.getenv "XDG_RUNTIME_DIR" or "/tmp", process.user(), args.port)
  system.make_private_folder(path)
  local found = system.stat(path)
  if not found or found.kind ~= "a directory" then
    fail("the run folder '%s' cannot be made; --run names another", path)
  elseif found.owner ~= process.user() or found.mode % 64 ~= 0 then
    fail("the run folder '%s' belongs to user %d and has mode %o, expected user %d and mode 700", path, found.owner, found.mode,
      process.user())
  end
  return find.absolute(path)
end

---- Models ------------------------------------------------------------------------------------------------------------

-- Quantizes a checkpoint into the run folder. Returns the artifact's path.
local function quantize(args, path, name, run)
  local model = loading.load(path, args)
  local to = ("%s/%s.safetensors"):format(run, name:gsub("[^%w%.-]", "_"))
  if args.activations == "f32" then
    model:save(to)
    return to
  end
  local static = args.activations == "static"
  local stats = (args.calibration or static) and loading.statistics(model, args) or nil
  model:quantize({ activations = args.activations, stats = stats }):save(to)
  return to
end

-- An error if a server with this run folder is at work: its files must not change under it.
local function check_alone(run)
  local file = io.open(run .. "/nginx.pid")
  local pid = file and tonumber(file:read "*l" or "")
  if file then
    file:close()
  end
  if pid and system.stat("/proc/" .. pid) then
    fail("a server with the run folder '%s' is at work as process %d; stop it, or choose another --port or --run", run, pid)
  end
end

local function read_models(args, run)
  local describe, list, taken = require("serve.models").describe, {}, {}
  for i, text in ipairs(args.models) do
    local name, path = text:match "^([%w%._-]+)=(.+)$"
    path = path or text
    local last = path:gsub("/+$", ""):match "([^/]+)$"
    name = name or last and last:gsub("%.safetensors$", "")
    if not name or name == "" then
      fail("'%s' gives the model no name; NAME=PATH does", text)
    end
    if taken[name] then
      fail("two models have the name '%s'; NAME=PATH gives them others", name)
    end
    taken[name] = true
    path = loading.is_folder(path) and quantize(args, path, name, run) or path
    list[i] = describe(name, find.absolute(path))
  end
  return list
end

---- nginx -------------------------------------------------------------------------------------------------------------

local MODULES = { "/usr/lib/nginx/modules", "/usr/lib64/nginx/modules", "/usr/local/nginx/modules" }

-- The folder into which `.ci/deps serve` unpacks nginx. A system needs it if it has LuaJIT, because Debian's packages of LuaJIT
-- and of nginx's Lua module exclude each other.
local UNPACKED = common.top .. "/build/deps/nginx"

local function load_modules(folder)
  return ("load_module %s/ndk_http_module.so;\nload_module %s/ngx_http_lua_module.so;"):format(folder, folder)
end

-- nginx: { program =, modules =, lua = }: the directives that load its Lua module (OpenResty has it built in), and a folder of
-- Lua modules, or nil.
local function find_nginx()
  if common.exists(UNPACKED .. "/usr/sbin/nginx") then
    local root = find.absolute(UNPACKED) .. "/usr/"
    process.set_environment("LD_LIBRARY_PATH", root .. "lib/x86_64-linux-gnu")
    return { program = root .. "sbin/nginx", modules = load_modules(root .. "lib/nginx/modules"), lua = root .. "share/lua/5.1" }
  end
  for _, program in ipairs { "openresty", "nginx" } do
    local said = io.popen(program .. " -V 2>&1"):read "*a"
    if said:find "lua%-nginx%-module" or said:find "openresty" then
      return { program = program, modules = "" }
    elseif said:find "nginx version" then
      for _, folder in ipairs(MODULES) do
        if common.exists(folder .. "/ngx_http_lua_module.so") then
          return { program = program, modules = load_modules(folder) }
        end
      end
    end
  end
  fail("nginx with its Lua module is not here. `sh .ci/deps serve` unpacks it below build/; or install it (Debian: apt-get "
    .. "install nginx-light libnginx-mod-http-lua luajit2, which takes the place of luajit; or OpenResty)")
end

-- A mask of CPUs for each worker, so that its engine has cores of its own.
local function affinity(workers, threads)
  local own = process.affinity()
  if workers * threads > #own then
    return "# more threads than processors: workers share them"
  end
  local masks = {}
  for w = 0, workers - 1 do
    local bits = {}
    for i = 1, own[#own] + 1 do
      bits[i] = "0"
    end
    for t = 1, threads do
      bits[#bits - own[w * threads + t]] = "1"
    end
    masks[w + 1] = table.concat(bits)
  end
  return "worker_cpu_affinity " .. table.concat(masks, " ") .. ";"
end

-- Files that a worker may have open: `wanted`, or what this system allows.
local function open_files(wanted)
  local allowed = tonumber((io.popen "ulimit -Hn":read "*l")) or math.huge
  return math.min(wanted, allowed)
end

local PASSED = { "PERIGEE_LIB", "PERIGEE_ISA", "PERIGEE_ONEDNN", "PERIGEE_CACHE", "PERIGEE_THREADS" }

local function configuration(args, run, nginx)
  local lua = find.folder
  local workers = args.workers or math.max(1, math.floor(#process.affinity() / args.threads))
  local values = {
    user = process.user() == 0 and ("user %s;"):format(args.user or "root") or "",
    load_modules = nginx.modules, workers = workers, affinity = affinity(workers, args.threads), run = run,
    env = "env " .. table.concat(PASSED, ";\nenv ") .. ";", seconds = args.timeout, connections = args.max_connections,
    files = open_files(args.max_connections + 512), log_level = "notice", host = args.host, port = args.port,
    body = args.max_body,
    access_log = args.log == "all" and "/dev/stderr json" or "off", pipe_body = args.max_pipe_body,
    lua_path = ("%s/?.lua;%s/?/init.lua;%s/?.lua;%s;"):format(lua, lua, find.absolute(common.here), nginx.lua
      and nginx.lua .. "/?.lua;" or ""),
  }
  local file = assert(io.open(common.here .. "/serve/nginx.conf"))
  local text = file:read "*a"
  file:close()
  return (text:gsub("%${([%w_]+)}", function(name)
    return tostring(values[name] or error("nginx.conf: ${" .. name .. "} has no value", 0))
  end))
end

local function key_of(args)
  if args.api_key_file then
    local text, why = json.text(args.api_key_file)
    return text and (text:match "^%s*([%w%p]+)%s*$" or fail("'%s' has no key in one word", args.api_key_file)) or fail("%s", why)
  end
end

-- Values that stand in nginx's configuration as they are: with other characters they would be directives of their own.
local function check_words(args, run)
  for name, value in pairs { host = args.host, user = args.user or "root", run = run } do
    if not value:find "^[%w%._/:%[%]+-]+$" then
      fail("--%s is '%s', expected letters, digits and . _ / : [ ] + - alone", name, value)
    end
  end
  if args.host:find ":" and not args.host:find "^%[" then
    args.host = "[" .. args.host .. "]" -- IPv6
  end
end

common.main(function()
  local args = arguments()
  if args.user and process.user() ~= 0 then
    fail "--user has no effect unless root starts the server"
  end
  local nginx = find_nginx()
  local run = run_folder(args)
  check_words(args, run)
  check_alone(run)
  local config = {
    models = read_models(args, run), key = key_of(args), started = os.time(), folder = find.absolute(common.here) .. "/serve",
    limits = {
      body = args.max_body, texts = args.max_texts, batch_tokens = args.max_batch_tokens, queue = args.max_queue,
      seconds = args.timeout,
    },
  }
  write(run .. "/serve.json", json.canonical(config))
  write(run .. "/nginx.conf", configuration(args, run, nginx))
  process.set_environment("PERIGEE_LIB", pgee.path)
  process.set_environment("PERIGEE_THREADS", tostring(args.threads))
  for _, model in ipairs(config.models) do
    io.stderr:write(("%s: %s, %s, %d tokens, %s\n"):format(model.name, model.task, model.type, model.limit, model.path))
  end
  io.stderr:write(("http://%s:%d\n"):format(args.host, args.port))
  local words = { nginx.program, "-e", "stderr", "-p", run, "-c", run .. "/nginx.conf" }
  if args.check then
    words[#words + 1] = "-t"
  end
  process.become(words)
end)
