--- Arguments of the Lua API: calls every public function and method with odd values. An input is a call: a line with the name of
-- the function, then a line with an expression for each argument. Expressions can use the names of `world` below.
local ffi = require "ffi"
local inputs = require "spec.fuzz.inputs"
local models = require "spec.support.models"
local perigee = require "perigee"

local driver = {}

local MODULES = {
  "tensor", "observer", "packed", "linear", "quant", "plan", "tokenizer", "evaluate", "tasks", "plot",
}

-- world: values for arguments, by name. calls: the functions, by their names in inputs.
local world, calls, names

-- Functions that are not called, because they wait, end the process, free or change something that other calls need, or are for
-- modules of Perigee (the last six take tables that modules made).
local LEFT_OUT = {
  register_model = true, threads = true, release = true, save = true, bench = true, repl = true, lower = true, quantizer = true,
  graph = true, optional = true, code = true,
}

local sources = {}

-- Whether the comment above a function says "For modules": such a function need not check its arguments.
local function is_for_modules(f)
  local info = debug.getinfo(f, "S")
  local path = info.source:sub(2)
  if not sources[path] then
    sources[path] = {}
    for line in (inputs.exists(path) and inputs.read(path) or ""):gmatch "([^\n]*)\n" do
      table.insert(sources[path], line)
    end
  end
  local line = info.linedefined - 1
  while (sources[path][line] or ""):sub(1, 2) == "--" do
    if sources[path][line]:find "For modules" then
      return true
    end
    line = line - 1
  end
  return false
end

local function add(prefix, functions)
  for name, f in pairs(functions) do
    if type(f) == "function" and type(name) == "string" and not LEFT_OUT[name] and not is_for_modules(f) then
      calls[prefix .. name] = f
    end
  end
end

-- Methods are called on the object of that name.
local function add_methods(object, metatable)
  local index = metatable.__index
  for _, from in ipairs { type(index) == "table" and index or {}, metatable } do
    for name, f in pairs(from) do
      if type(f) == "function" and type(name) == "string" and not LEFT_OUT[name] and name:sub(1, 2) ~= "__"
        and not is_for_modules(f) then
        calls[object .. ":" .. name] = function(...) return f(world[object], ...) end
      end
    end
  end
end

local function itself()
  local t = {}
  t[1], t.self = t, t
  return t
end

local function make()
  if world then
    return
  end
  local model = perigee.load(models.path "bert-heads")
  local embedder = perigee.load(models.path "embedder")
  world, calls = {
    model = model, quantized = model:quantize { activations = "dynamic" }, embedder = embedder,
    t = perigee.tensor.from { { 1, 2 }, { 3, 4 } },
    tok = embedder:tokenizer(), itself = itself(), nan = 0 / 0, inf = math.huge, cdata = ffi.new "int[4]", file = io.stdout,
    thread = coroutine.create(function() end), f = function() return nil end, null = ffi.cast("void *", nil),
    bad = function() error "a function that fails" end, long = ("a"):rep(100000), perigee = perigee, int64 = 5LL,
    observer = perigee.observer.new(4),
  }, {}
  for _, name in ipairs(MODULES) do
    if type(perigee[name]) == "table" then
      add(name .. ".", perigee[name])
    end
  end
  calls.load, calls.open, calls.lines = perigee.load, perigee.open, perigee.lines
  for _, name in ipairs { "model", "quantized", "embedder", "tok" } do
    add_methods(name, getmetatable(world[name]))
  end
  for _, class in ipairs(require("perigee.ffi").classes) do
    for _, name in ipairs { "t", "observer" } do
      if class.is(world[name]) then
        add_methods(name, class.metatable)
      end
    end
  end
  names = {}
  for name in pairs(calls) do
    names[#names + 1] = name
  end
  table.sort(names)
end

local VALUES = {
  "nil", "true", "false", "0", "1", "2", "-1", "0.5", "nan", "inf", "-inf", "2^31", "2^53", "1e308", "''", "'a'", "'a text'",
  "'\\0\\255'", "'F32'", "'mean'", "'*'", "{}", "{ 'a', 'b' }", "{ 1, 2 }", "{ {} }", "{ 1, nil, 3 }", "{ a = 1 }",
  "{ ids = { 1, 2 } }", "{ ids = { -1 } }", "{ words = { 'a' } }", "{ question = 'a', context = 'b' }", "{ text = 'a' }",
  "{ nan }", "{ { 1 }, { 2 } }", "{ stats = 1 }", "{ activations = 'dynamic' }", "{ alpha = nan }", "{ best = -1 }",
  "{ labels = {} }", "{ long = 'windows' }", "itself", "{ itself }", "model", "quantized", "embedder", "t", "tok", "observer",
  "cdata", "file", "thread", "f", "bad", "null", "long", "perigee", "int64", "{ t }", "{ f }", "'/nowhere'", "'/dev/null'",
  "'.'", "{ [0] = 1 }", "{ max_tokens = 4 }", "{ 'a', 2 }",
}

function driver.generate(random)
  make()
  local lines = { names[random(#names)] }
  for _ = 1, random(5) - 1 do
    lines[#lines + 1] = VALUES[random(#VALUES)]
  end
  return table.concat(lines, "\n")
end

function driver.run(input)
  make()
  local name, rest = input:match "^([^\n]+)\n?(.*)$"
  local f = calls[name]
  if not f then
    return
  end
  local count = 0
  local expressions = rest:gsub("[^\n]+", function(expression)
    count = count + 1
    return "(" .. expression .. ")"
  end):gsub("\n", ", ")
  local chunk = assert(loadstring("return " .. (count > 0 and expressions or "nil")))
  local given = setfenv(chunk, world)
  local ok, failure = pcall(function() return f(given()) end)
  if not ok then
    local why = inputs.unsound(failure)
    if why and not why:find "a function that fails" then
      return name .. ": " .. why
    end
  end
end

return driver
