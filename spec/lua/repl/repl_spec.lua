-- The prompt: values, completion, documentation and recipes; the prompt as a filter; a dialogue at a pseudo-terminal.
local complete = require "perigee.repl.complete"
local dialogue = require "spec.support.dialogue"
local docs = require "perigee.repl.docs"
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local names = require "perigee.repl.names"
local perigee = require "perigee"
local find = require "perigee.find"
local show = require "perigee.repl.show"
local sessions = require "perigee.repl.session"
local tensor = require "perigee.tensor"
local terminal = require "perigee.show.terminal"

local STYLE = { columns = 40, colours = false, utf8 = true, cut = true }

describe("show", function()
  local function text(x)
    return show.text(x, STYLE)
  end

  it("writes values as Lua would read them", function()
    assert.equal("1", text(1))
    assert.equal("0.1", text(0.1))
    assert.equal("nil", text(nil))
    assert.equal("a\nstring", text "a\nstring")
    assert.equal("{}", text {})
    assert.equal('{ 1, "a\\n\\"b\\"", true, x = 0.1 }', text { 1, 'a\n"b"', true, x = 0.1 })
    assert.equal('{ [1.5] = 2, ["a b"] = 3 }', text { ["a b"] = 3, [1.5] = 2 })
    assert.matches("^function %(spec/lua/repl/", text(text))
    assert.equal("function (of Lua)", text(print))
  end)

  it("breaks and cuts what does not fit", function()
    for _, columns in ipairs { 20, 40, 79 } do
      local style = { columns = columns, utf8 = true, cut = true }
      local numbers, words = {}, {}
      for i = 1, 1000 do
        numbers[i], words[i] = i * 1.25, ("w"):rep(i % 60)
      end
      local shown = show.text({ numbers = numbers, words = words, inner = { words, { words } } }, style)
      for line in shown:gmatch "[^\n]+" do
        assert.is_true(terminal.width(line) <= columns + 1, line) -- a comma may follow
      end
      assert.matches("… %d+ more", shown)
    end
    local list = {}
    for i = 1, 100 do
      list[i] = tostring(i):rep(10)
    end
    assert.matches('\n  … 76 more\n}$', text(list))
    local numbers = {}
    for i = 1, 100 do
      numbers[i] = i
    end
    assert.matches("^{\n +1, +2, +3,", text(numbers))
    assert.matches("\n  … %d+ more\n}$", text(numbers))
    assert.equal("{ 1, 2, 3 }", text { 1, 2, 3 })
  end)

  it("ends, whatever is in what", function()
    local t = { 1 }
    t.t = t
    assert.equal("{ 1, t = { the table it is in } }", text(t))
    assert.equal("{ a = { a = { a = { … } } } }", text { a = { a = { a = { a = { 1 } } } } })
  end)

  it("lets objects print themselves", function()
    assert.equal(tostring(tensor.from { 1, 2 }), text(tensor.from { 1, 2 }))
    assert.equal("{ x = tensor F32 [1] … }", text { x = tensor.from { 1 } })
    local object = setmetatable({}, { __tostring = function() return ("x"):rep(50) .. "\n" .. ("y"):rep(50) end })
    assert.equal(("x"):rep(39) .. "…\n" .. ("y"):rep(39) .. "…", text(object))
    local wide = setmetatable({}, { __tostring = function() return ("x"):rep(50) end }) -- one line wraps
    assert.equal(("x"):rep(50), text(wide))
    assert.equal("40 columns", text(setmetatable({}, { __show = function(_, style) return style.columns .. " columns" end })))
    assert.matches("does not print: .*boo", text(setmetatable({}, { __tostring = function() error "boo" end })))
  end)

  it("cuts names and leaves out columns of a table where the terminal is narrow", function()
    local model = perigee.load(models.path "embedder")
    local explained = model:explain()
    for _, columns in ipairs { 200, 90, 60, 45 } do
      local shown = show.text(explained, { columns = columns, utf8 = true, cut = true })
      local rows = shown:match "\n(linear .*)$"
      for line in rows:gmatch "[^\n]+" do
        assert.is_true(terminal.width(line) <= columns, line)
      end
      assert.matches("^linear .*SQNR dB\n", rows)
      assert.equal(columns == 200, shown == tostring(explained))
    end
    model:release()
  end)

  it("uses colours only if told to", function()
    assert.is_nil(text({ 1, "a", true, print }):find "\27")
    assert.matches("\27%[36m1\27%[0m", show.text({ 1 }, { columns = 40, colours = true }))
  end)
end)

describe("a session", function()
  local s

  before_each(function()
    s = sessions.new(false)
  end)

  local function value(text)
    local result = s:run(text)
    assert.is_true(result.ok, result[1])
    return unpack(result, 1, result.n)
  end

  local function failure(text)
    local result = s:run(text)
    assert.is_false(result.ok)
    return result[1]
  end

  it("runs expressions and statements", function()
    assert.equal(3, value "1 + 2")
    assert.equal(3, value "= 1 + 2")
    assert.equal(3, value "return 1 + 2")
    assert.same({ 1, nil, 3 }, { value "1, nil, 3" })
    assert.equal(0, s:run("x = 5").n)
    assert.equal(5, value "x -- a comment")
    assert.equal(0, s:run("").n)
    assert.equal(0, s:run("-- nothing").n)
    assert.is_nil(value "print and nil")
  end)

  it("knows when more is to come", function()
    for _, text in ipairs { "for i = 1, 2 do", "f(", "1 +", "x = ", "[[a", "function f()", "if x then", "{ 1,", "--[[ a" } do
      assert.is_nil(s:run(text).ok, text)
    end
    assert.equal(3, value "1 +\n2")
    for _, text in ipairs { "x = = 1", "1 1", "end", '"abc' } do
      assert.is_false(s:run(text).ok, text)
    end
  end)

  it("hides a value behind a semicolon, and keeps the last one", function()
    assert.is_true(s:run("6 * 7;").hidden)
    assert.equal(42, value "_")
    assert.is_false(s:run("_ + 1").hidden)
    assert.equal(43, value "_")
    value "y = 1"
    assert.equal(43, value "_")
  end)

  it("shows what an assignment to an object changed", function()
    s.env.object = setmetatable({ said = 0 }, {
      __newindex = function(t, key, v) t.said = { key, v } end,
      __changed = function(t) return t.said ~= 0 and t.said or nil end,
    })
    assert.same({ { "alpha", 0.5 } }, { value "object.alpha = 0.5" })
    assert.same({}, { value "x = object" })
    assert.same({ { "alpha", 0.7 } }, { value "x.alpha = 0.7" })
    assert.is_true(s:run("x.alpha = 0.8;").hidden)
    assert.same({}, { value "x = 1" })
  end)

  it("has its own names, and overwrites none of Lua's", function()
    local before = print
    value "print = 1"
    assert.equal(1, value "print")
    assert.equal(before, print)
    value "string_of_mine = 1"
    assert.is_nil(rawget(_G, "string_of_mine"))
    assert.equal(1, value "_G.string_of_mine")
    assert.equal(before, sessions.new(false):run("print")[1])
  end)

  it("refuses a name that there is not, and knows the nearest", function()
    value "model = 1"
    assert.equal("stdin:2: modell is not defined (did you mean model?)", failure "modell")
    assert.equal("stdin:3: zzqy is not defined", failure "zzqy")
    value "known = nil"
    assert.is_nil(value "known")
    value "perigee = require 'perigee'"
    assert.equal("stdin:7: attempt to call field 'lod' (a nil value; did you mean perigee.load?)", failure "perigee.lod 'x'")
    assert.equal("stdin:8: attempt to call method 'zzqy' (a nil value)", failure "(''):zzqy()")
    assert.equal("stdin:9: attempt to call method 'uper' (a nil value; did you mean perigee.version:upper?)",
      failure "return 1, perigee.version:uper()")
  end)

  it("keeps what is declared local at the beginning of a line", function()
    value "local a, b = 1, 2"
    assert.equal(3, value "a + b")
    value "local function f(x) return x * 2 end"
    assert.equal(8, value "f(4)")
    value "local c"
    assert.is_nil(value "c")
    assert.equal(5, value "local d = 5; return d")
  end)

  it("says where an error is from, without its own frames or Perigee's where they only blame", function()
    value "function f(x)\nreturn 1 + g(x)\nend"
    value "function g(x)\nreturn 1 + x.y.z\nend"
    local message = failure "f {}"
    assert.equal("stdin:5: attempt to index field 'y' (a nil value)\n  stdin:5: in g\n  stdin:2: in f\n  stdin:7", message)
    assert.matches("^stdin:8: boo$", failure 'error "boo"')
    assert.equal("boo", failure 'error("boo", 0)')
    value "tensor = require 'perigee.tensor'"
    assert.equal("stdin:11: dimension 1 of the shape is -1, expected an integer of at least 0",
      failure "tensor.new('F32', -1)")
    assert.matches("^table: ", failure "error {}")
    value "function deep(n) return n == 0 and error 'boo' or 1 + deep(n - 1) end"
    local _, frames = failure("deep(1000)"):gsub("\n  stdin:13: in deep", "")
    assert.equal(20, frames)
  end)

  it("is saved as a script that does it again", function()
    value "local a = 20"
    value "a + 1"
    value "function f(x) -- a comment\n  return x * 2\nend"
    value "_ * 2;"
    value "_, 'two' -- the last"
    value "a + 2; -- shown, as it does not end in a semicolon"
    failure "nothing_of_that_name"
    failure "1 1"
    value "return { a, f(a) }"
    value "(function() end)()"
    value "b = { a }; a = 0"
    local path = files.folder {} .. "/session.lua"
    finally(files.clean)
    assert.is_true(s:save(path))
    local there, message = s:save(path)
    assert.is_nil(there)
    assert.matches("is there already; `:save! ", message)
    assert.is_true(s:save(path, true))
    assert.is_nil((s:save("/nowhere/at/all")))
    assert.same({ nil, "/tmp is a folder" }, { s:save("/tmp", true) })
    assert.is_nil(io.open(path .. ".new"))
    local pipe = io.popen(("cd / && '%s' %s 2>&1"):format(dialogue.interpreter(), path))
    assert.equal("21\n42\ntwo\n22\n{ 20, 40 }\n", pipe:read "*a")
    pipe:close()
  end)
end)

describe("completion", function()
  local s

  local function listed(prefix)
    return prefix == "" and { "a.txt", "folder/" } or prefix == "fo" and { "folder/" } or {}
  end

  -- The candidates at the end of a text, and what follows the only one.
  local function found(text)
    local list, length, after = complete.find(text, s, listed)
    assert.equal(text:sub(#text - length + 1), (list[1] or text:sub(#text - length + 1)):sub(1, length))
    return list, after
  end

  setup(function()
    s = sessions.new(false)
    s.env.perigee = perigee
    s.env.model = perigee.load(models.path "embedder")
    s.env.q = s.env.model:quantize { activations = "dynamic" }
    s.env.t = tensor.from { 1 }
    s.env.list = { { first = 1 }, ["a b"] = { second = 2 } }
  end)

  teardown(function()
    s.env.q:release()
    s.env.model:release()
  end)

  it("knows Lua's names and the session's", function()
    assert.same({ "model", "module" }, found "mod")
    assert.same({ "model", "module" }, found "x = mod")
    assert.same({ "while" }, found "whi")
    assert.same({ "format" }, found "string.form")
    assert.same({ "tonumber", "tostring" }, found "print(to")
    assert.same({}, found "nothing.of")
    assert.same({}, found "-- mod")
    assert.same({}, found "1 .. mod.")
    assert.same({ "model", "module" }, found "'a' .. mod")
    assert.same({ "model", "module" }, found "[[a]] .. mod")
  end)

  it("walks metatables, the library's objects included", function()
    assert.same({ "calibrate" }, found "model:cal")
    assert.same({ "quantize" }, found "model:quan")
    assert.same({ "embed" }, found "q:emb")
    assert.same({ "embed" }, found "print(q:emb")
    assert.same({ "totable" }, found "t:tot")
    assert.same({ "shape" }, found "t.sh")
    assert.same({}, found "t:sh")
    assert.same({ "plot" }, found "perigee.plo")
    assert.same({ "first" }, found "list[1].fi")
    assert.same({ "second" }, found 'list["a b"].se')
    assert.same({ "upper" }, found "model.dir:up")
  end)

  it("offers what a user may call, not what passes and tasks call", function()
    for name in ("runner graph head pooling prompts release_runners gather"):gmatch "%S+" do
      assert.same({}, found("q:" .. name), name)
    end
    assert.same({ "release" }, found "model:rel")
  end)

  it("knows settings where they are given", function()
    assert.same({ "activations", "alpha", "attention" }, found "q:set { a")
    assert.same({ "and", "arg", "assert" }, found "q:set { alpha = a")
    assert.same({ "skip" }, found "model:quantize { alpha = 0.5, sk")
  end)

  it("knows sites and linears inside quotes, part by part", function()
    assert.same({ "encoder.layer." }, found 'q:set("')
    assert.same({ "encoder.layer.0.", "encoder.layer.1." }, found "q:set('encoder.layer.")
    assert.same({ "encoder.layer.0.attention.self.key", "encoder.layer.0.attention.self.qkv",
      "encoder.layer.0.attention.self.query", "encoder.layer.0.attention.self.value" },
      found 'q:set { alpha = { ["encoder.layer.0.attention.self.')
    local list, after = found 'q:set("encoder.layer.1.intermediate.d'
    assert.same({ "encoder.layer.1.intermediate.dense" }, list)
    assert.equal('"', after)
    assert.same({ "encoder.layer." }, found "q:set { skip = { 'enc")
    assert.same({ "encoder.layer." }, found 'x = "enc')
  end)

  it("knows files inside other quotes, and commands", function()
    assert.same({ "a.txt", "folder/" }, found 'perigee.lines "')
    local list, after = found "perigee.load 'fo"
    assert.same({ "folder/" }, list)
    assert.equal("", after)
    assert.same({ "a.txt", "folder/" }, found ":save ")
    assert.same({ "help" }, found ":h")
    assert.same({ "help", "quit", "report", "save" }, found ":")
    assert.same({ "calibrate" }, found "? model.cal")
    assert.same({ "set" }, found "?q:set")
  end)
end)

describe("documentation", function()
  local s

  setup(function()
    s = sessions.new(false)
    s.env.perigee, s.env.model = perigee, perigee.load(models.path "embedder")
    s.env.q, s.env.t, s.env.x = s.env.model:quantize { activations = "dynamic" }, tensor.from { 1 }, 5
  end)

  teardown(function()
    s.env.q:release()
    s.env.model:release()
  end)

  local function of(name)
    return assert(docs.find(name, s))
  end

  it("of a function is the comment above it, with its parameters and place", function()
    local text = of "t:rows"
    assert.matches("^t:rows%(first, last%)\nRows first to last, both included: a view%.\n\nlua/perigee/tensor%.lua:%d+$", text)
    assert.matches("^perigee%.threads%(n%)\nperigee%.threads%(%): how many threads a run uses", of "perigee.threads")
    assert.matches("^perigee.load%(dir, given%)\nload%(dir", of "perigee.load(")
  end)

  it("follows to the module that a comment names", function()
    local text = of "model:calibrate"
    assert.matches("see quantize/calibrate%.lua", text)
    assert.matches("\n  samples   texts taken", text)
    assert.matches("\n  activations  \"static\": scales from calibration", of "model.quantize")
  end)

  it("of an object is its class and what it can do", function()
    assert.matches("^Quantized: an INT8 model.*\n  q:set%(.-%)\n      %S", of "q")
    assert.matches("^Tensors: arrays.*\n  t:rows%(first, last%)\n      Rows first to last", of "t")
    assert.matches("^x is 5$", of "x")
  end)

  it("of modules, settings, methods by name alone, C functions, Lua's", function()
    assert.matches("^Perigee: INT8 inference.*\n  perigee%.threads%(n%)", of "perigee")
    assert.matches("^Settings: everything a user can choose", of "settings")
    assert.matches("^Plot: curves.*\n  plot%.bars%(given%)", of "plot")
    assert.matches("^a setting\n +alpha +SmoothQuant's alpha, 0 to 1.*pattern", of "alpha")
    assert.matches("^a setting\n +alpha ", of "q.alpha")
    assert.matches("model:calibrate", of "calibrate")
    assert.matches("^q:sweep {", of "nobody:sweep") -- there is no q yet, and somebody asks what it will have
    assert.matches("^/%* SmoothQuant .-int pgee_smooth%(.-%);\n\nperigee%.h$", of "pgee_smooth")
    assert.matches("^typedef struct pgee_batch {.-} pgee_batch;", of("pgee_batch"):match "typedef.*")
    assert.matches("PGEE_INTERRUPTED = 6", of "PGEE_INTERRUPTED")
    assert.matches("^perigee.tensor.from.*tensor.from {", "perigee." .. of "tensor.from")
    assert.matches("^print is a function of Lua", of "print")
    s:run "function mine() end"
    assert.matches("^mine was typed in line 1$", of "mine")
  end)

  it("that there is not has a near name", function()
    assert.same({ nil, "model:calibrate" }, { docs.find("model:calibarte", s) })
    assert.same({ nil, "perigee.threads" }, { docs.find("perigee.thraeds", s) })
    assert.same({}, { docs.find("zzqy", s) })
  end)

  it("of every public function of the modules to use by hand is there", function()
    for _, module in ipairs { "tensor", "observer", "packed", "quant", "plan", "evaluate", "plot" } do
      for name, f in pairs(require("perigee")[module]) do
        if type(f) == "function" then
          assert.truthy(docs.of_function(f), module .. "." .. name)
        end
      end
    end
    for _, name in ipairs(names.of(s.env.t)) do
      local ok, f = pcall(function() return s.env.t[name] end)
      if ok and type(f) == "function" then
        assert.truthy(docs.of_function(f), "tensor:" .. name)
      end
    end
    for _, name in ipairs { "model:embed", "q:embed", "q:classify", "q:hidden", "q:layers", "q:sqnr", "q:sweep", "q:undo" } do
      assert.is_nil(of(name):find("no documentation", 1, true), name)
    end
  end)
end)

-- Runs the recipe with this input in another folder. Returns what it prints, and its status.
local function filter(input, arguments, environment)
  local path = files.write(input)
  local top = find.absolute "."
  local pipe = io.popen(("cd / && env PERIGEE_LIB='%s' %s '%s' '%s/recipes/repl.lua' %s < %s 2>&1; echo :$?"):format(
    os.getenv "PERIGEE_LIB", environment or "", dialogue.interpreter(), top, arguments:gsub("TOP", top), path))
  local output = pipe:read "*a"
  pipe:close()
  local text, status = output:match "^(.*):(%d+)\n$"
  return text, tonumber(status)
end

local MODEL = "'TOP/" .. models.path "embedder" .. "'"

describe("recipes/repl.lua in a pipe", function()
  after_each(files.clean)

  it("prints values and nothing else", function()
    local text, status = filter([[
local x = 20
x + 1
for i = 1, 2 do
  print(i)
end
{ 1, 2 }, "a"
#model:embed "a text";
_
]], MODEL)
    assert.equal("21\n1\n2\n{ 1, 2 }\na\n32\n", text)
    assert.equal(0, status)
  end)

  it("has statistics and an INT8 model if there is something to calibrate on", function()
    local text = filter("stats\nq.alpha\n", MODEL .. " --calibration 'TOP/recipes/data/calibration.txt' --samples 4")
    assert.matches("^.*4 texts, %d+ tokens.*\n0%.%d+\n$", text)
  end)

  it("stops at the first error with status 1, and says in which line", function()
    local text, status = filter("1\n\nnothing\n2\n", MODEL)
    assert.equal("1\nerror: stdin:3: nothing is not defined\n", text)
    assert.equal(1, status)
    text, status = filter("1\nfor i = 1, 2 do\n", MODEL)
    assert.equal("1\nerror: stdin:2: the input ends where `for i = 1, 2 do` is not complete\n", text)
    assert.equal(1, status)
    text, status = filter(":nonsense\n2\n", MODEL)
    assert.matches("^error: :nonsense is none of", text)
    assert.equal(1, status)
    assert.same({ "error: stdin:1: unexpected symbol near 'char(27)'\n", 1 }, { filter("\27[A\n", MODEL) })
  end)

  it("has status 1 where what it prints is lost", function()
    local _, status = filter("1 + 1\n", MODEL .. " > /dev/full")
    assert.equal(1, status)
  end)

  it("knows help, exit and quit without a colon, unless they are variables", function()
    for _, word in ipairs { "exit", "quit", "quit()", ":quit" } do
      local text, status = filter("help\n" .. word .. "\nnothing\n", MODEL)
      assert.equal(0, status, text)
      assert.matches("exit, quit, :quit, Ctrl-D", text, 1, true)
    end
    assert.matches("\n?5\n$", (filter("quit = 5\nquit\n", MODEL)))
  end)

  it("opens artifacts, which cannot be changed, and shows q as a table", function()
    local path = files.folder {} .. "/a.safetensors"
    local text, status = filter(("q:save %q\nq\nq:diff(model)\n"):format(path), MODEL
      .. " --calibration 'TOP/recipes/data/calibration.txt' --samples 4")
    assert.equal(1, status)
    assert.matches("INT8, settings", text)
    assert.matches("the other model is FP32, which has no settings; q:sqnr() and q:explain() compare with FP32", text, 1, true)
    text, status = filter('#q:embed "a"\nq.alpha = 0.5\n', "'" .. path .. "'")
    assert.equal(1, status)
    assert.matches("^32\n", text)
    assert.matches("error: .*alpha", text)
    text = filter("", "'" .. path .. "' --samples 4")
    assert.matches("--samples has no effect on an artifact", text, 1, true)
  end)

  it("obeys commands, and ends at :quit", function()
    local folder = files.folder {}
    assert.same({ "4\n", 0 }, { filter("::again:: print(4)\n", MODEL) }) -- a label is no command
    local text, status = filter(("6 * 7\n? pgee_threads_set\n:save %s/s.lua\n:quit\nnothing\n"):format(folder), MODEL)
    assert.matches("^42\n/%* Sets the maximum number of threads that a run uses, 1 to 256.-%*/\n"
      .. "int pgee_threads_set%(int threads%);\n\nperigee.h\n3 entries in ", text)
    assert.equal(0, status)
    assert.matches("\nmodel = perigee.load \"/.*\nperigee_show%(6 %* 7%)\n$", models.read(folder .. "/s.lua"))
  end)

  it("cuts no line where there is no terminal to fit, and has no colours", function()
    local text = filter("('x'):rep(300)\nmodel:explain()\n", MODEL, "COLUMNS=30")
    assert.truthy(text:find(("x"):rep(300), 1, true))
    assert.matches("linear +N x K +precision +kernel +alpha +scale +zero +SQNR dB\n", text)
    assert.truthy(text:find("\nencoder.layer.0.attention.output.dense ", 1, true))
    assert.is_nil(text:find "\27")
  end)

  it("refuses a model that is not there in one line", function()
    local text, status = filter("1\n", "/nowhere")
    assert.matches("^error: [^\n:]*'/nowhere'[^\n]*\n$", text)
    assert.equal(1, status)
    text, status = filter("", "--help")
    assert.matches("^Usage: repl .-%[<model>%]", text)
    assert.equal(0, status)
  end)
end)

describe("recipes/repl.lua at a terminal", function()
  local multiplexer = io.open "/dev/ptmx"
  if not multiplexer then
    return pending "there are no pseudo-terminals here"
  end
  multiplexer:close()
  local d, state
  local readline = pcall(ffi.load, "libreadline.so.8")
  local with_readline = readline and it or function(name)
    pending(name .. ": GNU readline is not here (Debian: libreadline8)")
  end

  before_each(function()
    state = files.folder {}
  end)

  after_each(function()
    if d then
      d:kill()
      d = nil
    end
    files.clean()
  end)

  local function start(environment, ...)
    local given = {
      XDG_STATE_HOME = state, TERM = "xterm", LC_ALL = "C.UTF-8", NO_COLOR = false, COLUMNS = false, INPUTRC = "/dev/null",
      -- readline keeps memory until the process ends; Lua unloads it just before, and it looks lost.
      ASAN_OPTIONS = os.getenv "PERIGEE_HARD" and environment.TERM ~= "dumb" and "detect_leaks=0" or nil,
    }
    for name, value in pairs(environment) do
      given[name] = value
    end
    d = dialogue.start({ dialogue.interpreter(), "recipes/repl.lua", models.path "embedder", ... }, given)
    return d
  end

  -- Types a line and returns what came before the next prompt, without the line itself.
  local function say(line)
    d:send(line .. "\r")
    d:expect "\n"
    return (d:expect("> "))
  end

  local function ends()
    local status, rest = d:finish()
    assert.equal(0, status, rest)
  end

  with_readline("is a dialogue", function()
    start({}, "--calibration", "recipes/data/calibration.txt", "--samples", "8")
    d:expect 'q = model:quantize { stats = stats }\n> '

    d:send "q.alp\t"
    d:expect "q.alpha"
    d:send "\r"
    assert.matches("^\n0%.%d+\n$", d:expect "> ")

    d:send 'x = "encoder.layer.0.int\t'
    d:expect 'encoder.layer.0.intermediate.dense"'
    d:send "\r"
    d:expect "> "
    assert.equal("encoder.layer.0.intermediate.dense\n", say "x")

    assert.equal("nil\n", say 'os.getenv "COLUMNS"') -- or it would be the width of now for ever

    d:send "model:c\t\t" -- several: a list of them, without what is before the colon
    d:expect "calibrate  classify"
    d:expect "> model:c"
    d:send "\3"
    d:expect "^C\n> "

    d:send 'perigee.lines "recipes/data/calib\t'
    d:expect 'recipes/data/calibration.txt"'
    d:send "\3"
    d:expect "^C\n> "

    d:send "for i = 1, 2 do\r"
    d:expect ">> "
    d:send "print(i * 10)\r"
    d:expect ">> "
    d:send "end\r"
    assert.equal("end\n10\n20\n", d:expect "> ")

    assert.matches("^error: stdin:%d+: modell is not defined %(did you mean model%?%)\n$", say "modell")
    assert.matches("^q:set%(.*lua/perigee/quantize/quantized.lua:%d+\n$", say "? q:set")

    -- Two lines pasted at once.
    d:send "\27[200~a = 1\rb = 2\27[201~\r"
    d:expect "b = 2"
    d:expect "\n> "
    assert.equal("3\n", say "a + b")

    -- A calibration that would take for ever.
    d:send 'model:calibrate(function() return "a text" end, { samples = 2^30 })\r'
    d:expect "calibrating ["
    d:send "\3"
    d:expect "\ninterrupted"
    d:expect "\n> "
    assert.equal("32\n", say '#model:embed "a text"')
    assert.equal("0\n", say 'model:calibrate({ "a text" }, { progress = false }).texts - 1')

    -- Lua that would.
    d:send "while true do end\r"
    d:expect "end\n"
    d:send "\3"
    d:expect "\ninterrupted"
    d:expect "\n> "
    d:send "pcall(function() while true do pcall(string.rep, 'x', 10) end end)\r"
    d:expect "end)\n"
    d:send "\3"
    d:expect "\ninterrupted"
    d:expect "\n> "
    local endless = files.write "local function f() while true do end end\nf()\n" -- not typed, but run by what is
    d:send("dofile '" .. endless .. "'\r")
    d:expect "'\n"
    d:send "\3"
    d:expect "\ninterrupted"
    d:expect "\n> "

    assert.matches("^%d+ entries in .*\n$", say(":save " .. state .. "/saved.lua"))
    d:send "\4"
    local status, rest = d:finish()
    assert.equal("\n", rest)
    assert.equal(0, status)

    local pipe = io.popen(("'%s' %s/saved.lua 2>&1"):format(dialogue.interpreter(), state))
    local output = pipe:read "*a"
    pipe:close()
    assert.matches("^0%.%d+\nencoder.layer.0.intermediate.dense\nnil\n10\n20\n3\n32\n0\n$", output)
    local history = models.read(state .. "/perigee/history")
    assert.matches("^q%.alpha\n", history)
    assert.matches("\nprint%(i %* 10%)\nend\n", history)
    assert.is_nil(history:find "model:c\n")
  end)

  with_readline("remembers what was typed in sessions before it", function()
    start {}
    d:expect "embedder\"\n> "
    assert.equal("42\n", say "6 * 7")
    d:send ":quit\r"
    ends()
    start {}
    d:expect "embedder\"\n> "
    d:send "\27[A\27[A"
    d:expect "6 * 7"
    d:send " + 1\r"
    d:expect "\n43\n> "
    d:send "\4"
    ends()
  end)

  with_readline("has colours unless NO_COLOR says no", function()
    start {}
    d.keep_codes = true
    d:expect "embedder\"\r\n"
    d:send "6 * 7\r"
    d:expect "\27[36m42\27[0m\r\n"
    d:kill()
    start { NO_COLOR = "1" }
    d.keep_codes = true
    d:expect "embedder\"\r\n"
    d:send "6 * 7\r"
    d:expect "\r42\r\n"
    assert.is_nil(d.all:find("\27[36m", 1, true))
  end)

  it("takes plain lines where they cannot be edited", function()
    start { TERM = "dumb" }
    d:expect "embedder\"\n> "
    assert.equal("42\n", say "6 * 7")
    d:send "forgotten\3"
    d:expect "\n> "
    assert.equal("43\n", say "_ + 1")
    d:send "\4"
    ends()
  end)

  it("prompts although the calibration before it was interrupted, and ends if the model is not there", function()
    local long = state .. "/long"
    assert(os.execute(("yes 'a text of five words' | head -n 1000000 > '%s'"):format(long)) == 0)
    start({}, "--calibration", long, "--samples", "1000000")
    d:expect "calibrating ["
    d:send "\3"
    d:expect "interrupted"
    d:expect "\n> "
    assert.equal("32\n", say "#model:embed 'a'")
    d:kill()
    d = dialogue.start({ dialogue.interpreter(), "recipes/repl.lua", "/nowhere" }, { XDG_STATE_HOME = state, TERM = "xterm" })
    local status, text = d:finish()
    assert.equal(1, status)
    assert.matches("error: .*/nowhere", text)
  end)
end)
