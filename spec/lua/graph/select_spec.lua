-- Selection: who is chosen, what is remembered, and what a broken memory does. Bits are spec/golden's.
local ffi = require "ffi"
local files = require "spec.support.files"
local live = require "spec.support.live"
local json = require "perigee.base.json"
local models = require "spec.support.models"
local packed = require "perigee.packed"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local selection = require "perigee.graph.passes.select"
local tensor = require "perigee.tensor"
local C = pgee.C

local weights, folder, warnings, timed

local function weight(N, K)
  local t = tensor.new("F32", { N, K })
  local w = packed.new(t)
  t:release()
  return w
end

-- Options under which oneDNN is `gain` times as fast, and each timing is noted.
local function options(gain, others)
  local given = {
    cache = folder .. "/a/b/select.json",
    warn = function(text)
      table.insert(warnings, text)
    end,
    time = function(list, tokens)
      table.insert(timed, ("%dx%d %d"):format(list[1].N, list[1].K, tokens))
      return type(gain) == "table" and gain[tokens] or gain
    end,
  }
  for key, value in pairs(others or {}) do
    given[key] = value
  end
  return given
end

-- Specs that need something to choose from.
local function check(title, f)
  it(title, function()
    if C.pgee_onednn_check(weights[1].handle) ~= C.PGEE_OK then
      return pending(ffi.string(C.pgee_message()))
    end
    f()
  end)
end

local function put(path, text)
  local file = assert(io.open(path, "wb"))
  file:write(text)
  file:close()
end

local function kernels(choices)
  local list = {}
  for shape, choice in pairs(choices.shapes) do
    list[#list + 1] = ("%s %s %s"):format(shape, choice.kernel, choice.from)
  end
  table.sort(list)
  return list
end

describe("selection", function()
  before_each(function()
    weights, warnings, timed = { weight(64, 128), weight(70, 64), weight(64, 128) }, {}, {}
    folder = files.folder {}
  end)

  after_each(function()
    for _, w in ipairs(weights) do
      w:release()
    end
    files.clean()
  end)

  check("times each shape once, at each token count", function()
    selection.run(weights, options(1))
    assert.are.same({ "64x128 16", "64x128 64", "64x128 256", "70x64 16", "70x64 64", "70x64 256" }, timed)
    assert.are.same({}, warnings)
  end)

  check("prefers ours unless another is 3 % faster over all counts", function()
    local function chosen(gain)
      return selection.run(weights, options(gain, { cache = false })).shapes["64 x 128"].kernel
    end
    assert.equal("native", chosen(1.029))
    assert.equal("onednn", chosen(1.031))
    assert.equal("native", chosen { [16] = 0.8, [64] = 1.1, [256] = 1.1 })
    assert.equal("onednn", chosen { [16] = 0.9, [64] = 1.2, [256] = 1.2 })
  end)

  check("remembers, in a file and without one", function()
    local first = selection.run(weights, options(1.5))
    assert.are.same({ "64 x 128 onednn timing", "70 x 64 onednn timing" }, kernels(first))
    timed = {}
    local again = selection.run(weights, options(0.5))
    assert.are.same({ "64 x 128 onednn file", "70 x 64 onednn file" }, kernels(again))
    selection.run(weights, options(0.5, { known = first, cache = false }))
    assert.are.same({}, timed)
    again = selection.run(weights, options(0.5, { fresh = true }))
    assert.are.same({ "64 x 128 native timing", "70 x 64 native timing" }, kernels(again))
    assert.are.same({ "64 x 128 native file", "70 x 64 native file" }, kernels(selection.run(weights, options(1.5))))
    assert.are.same({}, warnings)
  end)

  check("adds to what the file holds, and leaves nothing beside it", function()
    selection.run({ weights[1] }, options(1.5))
    local path = options().cache
    local file = json.object(path)
    file.machines["another machine"] = { ["1 x 2"] = { kernel = "onednn", gain = 2 } }
    put(path, json.canonical(file))
    selection.run({ weights[2] }, options(0.5))
    file = json.object(path)
    assert.equal(2, file.machines["another machine"]["1 x 2"].gain)
    assert.equal("onednn", file.machines[selection.machine()]["64 x 128"].kernel)
    assert.equal("native", file.machines[selection.machine()]["70 x 64"].kernel)
    local listing = assert(io.popen(("ls '%s/a/b'"):format(folder)))
    assert.equal("select.json\n", listing:read "*a")
    listing:close()
  end)

  check("asks again when the ISA or the number of threads has changed", function()
    local threads = perigee.threads()
    local first = selection.run(weights, options(1.5))
    timed = {}
    perigee.threads(threads + 1)
    local again = selection.run(weights, options(0.5, { known = first }))
    perigee.threads(threads)
    assert.are_not.equal(first.machine, again.machine)
    assert.equal(6, #timed)
  end)

  for name, text in pairs {
    ["is not JSON"] = "{", ["is a list"] = "[]", ["has another format"] = '{ "format": 1, "machines": {} }',
    ["has no machines"] = '{ "format": 2 }', ["names a kernel that does not exist"] =
      '{ "format": 2, "machines": { "m": { "1 x 2": { "kernel": "best", "gain": 1 } } } }',
    ["has a number where choices should be"] = '{ "format": 2, "machines": { "m": 3 } }',
    ["is empty"] = "",
  } do
    check("warns of a file that " .. name .. ", and replaces it", function()
      local given = options(1.5, { cache = folder .. "/select.json" })
      put(given.cache, text)
      assert.are.same({ "64 x 128 onednn timing", "70 x 64 onednn timing" }, kernels(selection.run(weights, given)))
      assert.equal(1, #warnings)
      assert.matches("selected anew: .*select.json'", warnings[1])
      selection.run(weights, given)
      assert.equal(1, #warnings)
    end)
  end

  check("warns if it cannot write, and goes on", function()
    put(folder .. "/file", "")
    local choices = selection.run(weights, options(1.5, { cache = folder .. "/file/select.json" }))
    assert.are.same({ "64 x 128 onednn timing", "70 x 64 onednn timing" }, kernels(choices))
    assert.equal(1, #warnings)
    assert.matches("not kept: cannot write '.*/file/select.json%.part': Not a directory", warnings[1])
  end)

  check("times real kernels", function()
    local gain
    assert.are.equal(0, (live.during(function() gain = selection.time({ weights[1], weights[3] }, 16) end)))
    assert.is_true(gain > 0 and gain < math.huge)
  end)

  it("has nothing to time where there is no oneDNN that is exact", function()
    local isa = ffi.new "int[1]"
    pgee.check(C.pgee_isa(isa))
    pgee.check(C.pgee_isa_set(C.PGEE_REF))
    local choices = selection.run(weights, options(1.5))
    pgee.check(C.pgee_isa_set(isa[0]))
    assert.are.same({ "64 x 128 native check", "70 x 64 native check" }, kernels(choices))
    assert.is_string(choices.shapes["70 x 64"].reason)
    assert.are.same({}, timed)
    assert.is_false(json.exists(options().cache))
  end)

  it("is explained where there is no choice", function()
    local isa = ffi.new "int[1]"
    pgee.check(C.pgee_isa(isa))
    pgee.check(C.pgee_isa_set(C.PGEE_REF))
    local model = perigee.load(models.path "gelu")
    local q = model:quantize { activations = "dynamic" }
    assert.matches("oneDNN does not multiply INT8: %w+", table.concat(q:explain().notes, "\n"))
    assert.equal("ref 4x64", q:explain().rows[1].kernel)
    pgee.check(C.pgee_isa_set(isa[0]))
    q:release()
    model:release()
  end)

  it("finds its file by the environment", function()
    local program = [[PERIGEE_LIB='%s' %s luajit -e 'package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
      io.write(tostring(require("perigee.graph.passes.select").path()))']]
    for settings, path in pairs {
      ["PERIGEE_CACHE=/p XDG_CACHE_HOME=/x HOME=/h"] = "/p/select.json",
      ["PERIGEE_CACHE= XDG_CACHE_HOME=/x HOME=/h"] = "/x/perigee/select.json",
      ["PERIGEE_CACHE= XDG_CACHE_HOME= HOME=/h"] = "/h/.cache/perigee/select.json",
      ["PERIGEE_CACHE= XDG_CACHE_HOME= HOME="] = "nil",
    } do
      local pipe = assert(io.popen(program:format(os.getenv "PERIGEE_LIB", settings)))
      assert.equal(path, pipe:read "*a")
      pipe:close()
    end
  end)

  it("is part of quantizing: explain names what runs, and the answers are the same bits", function()
    local model = perigee.load(models.path "gelu")
    local inputs = models.random_inputs(3, 12, 97, 1)
    local q = model:quantize { activations = "dynamic" }
    local vectors = q:hidden(inputs)
    for _, row in ipairs(q:explain().rows) do
      local choice = row.precision == "int8" and q.choices.shapes[("%d x %d"):format(row.N, row.K)]
      assert.equal(choice and choice.kernel == "onednn" or false, row.precision == "int8" and row.kernel:match "^onednn" ~= nil)
    end
    for _, gain in ipairs { 0.5, 2 } do
      q:select(options(gain, { cache = false }))
      local again = q:hidden(inputs)
      assert.is_true(vectors:equals(again))
      again:release()
    end
    for _, case in ipairs {
      { 5, "the options are 5, expected a table" },
      { { tokens = "x" }, "tokens is the string 'x', expected a list of token counts" },
      { { tokens = {} }, "tokens is a table, expected a list of token counts" },
      { { tokens = { 16, 0 } }, "tokens[2] is 0, expected an integer from 1 to 65536" },
      { { cache = 5 }, "cache is 5, expected the path of a file, or false" },
      { { warn = 5 }, "warn is 5, expected a function" },
      { { token = 5 }, "select has no option token, only" },
    } do
      local ok, message = pcall(q.select, q, case[1])
      assert.is_false(ok)
      assert.matches(case[2], message, 1, true)
    end
    vectors:release()
    q:release()
    model:release()
  end)
end)
