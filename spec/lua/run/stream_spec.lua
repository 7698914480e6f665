local ffi = require "ffi"
local live = require "spec.support.live"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"

local embedder = perigee.load(models.path "embedder")
local q = embedder:quantize { activations = "dynamic" }
local classifier = perigee.load(models.path "pairs"):quantize { activations = "dynamic" }

-- Texts of very different lengths.
local function texts(count)
  local list = {}
  for i = 1, count do
    list[i] = ("text %d "):format(i):rep(1 + i * 7 % 5)
  end
  return list
end

local function iterator(list)
  local i = 0
  return function()
    i = i + 1
    return list[i]
  end
end

describe("stream", function()
  it("gives each row and its answer, in order, whatever the window", function()
    local list = texts(50)
    local want = q:embed(list)
    for _, window in ipairs { 1, 7, 50, 1000 } do
      local n = 0
      for row, answer, failure, dropped in q:stream(iterator(list), { task = "embed", window = window }) do
        n = n + 1
        assert.are.equal(list[n], row)
        assert.is_true(want[n]:equals(answer))
        assert.is_nil(failure)
        assert.is_nil(dropped)
      end
      assert.are.equal(50, n)
    end
  end)

  it("takes lists, nothing, and what the checkpoint is for", function()
    local labels = {}
    for _, answer in classifier:stream { { "a", "b" }, "c" } do
      labels[#labels + 1] = answer.label
    end
    assert.are.same({ classifier:classify({ { "a", "b" } })[1].label, classifier:classify "c".label }, labels)
    assert.is_nil(q:stream({})())
  end)

  it("reads inputs from fields", function()
    local rows = { { a = "x", b = "y", id = 1 }, { a = "z", b = "w", id = 2 } }
    local pair = classifier:classify { { "x", "y" }, { "z", "w" } }
    for row, answer in classifier:stream(rows, { field = { "a", "b" } }) do
      assert.are.same(pair[row.id].logits, answer.logits)
    end
    for row, answer in classifier:stream(rows, { field = function(row) return row.a .. row.b end }) do
      assert.are.same(classifier:classify(row.a .. row.b).logits, answer.logits)
    end
    for row, answer in classifier:stream(rows, { field = "a" }) do
      assert.are.same(classifier:classify(row.a).logits, answer.logits)
    end
  end)

  it("answers all but the rows that cannot be answered", function()
    local list = texts(40)
    local want = q:embed(list)
    for _, i in ipairs { 1, 2, 17, 40 } do
      list[i] = false
    end
    list[5] = { text = "x" }
    local n, failures = 0, {}
    for row, answer, failure in q:stream(list, { window = 16 }) do
      n = n + 1
      assert.are.equal(list[n], row)
      if failure then
        failures[n] = failure
        assert.is_nil(answer)
      else
        assert.is_true(want[n]:equals(answer))
      end
    end
    assert.are.equal(40, n)
    for _, i in ipairs { 1, 2, 17, 40 } do
      assert.matches("^is false, expected a text", failures[i])
      failures[i] = nil
    end
    assert.matches("^is a table, expected a text", failures[5])
    failures[5] = nil
    assert.are.same({}, failures)
  end)

  it("says which field is missing, and what a row is that has none", function()
    local failures = {}
    for _, _, failure in q:stream({ { txt = "a" }, "b", { text = "c" } }, { field = "text" }) do
      failures[#failures + 1] = failure or false
    end
    assert.are.equal(2, #failures - (failures[3] == false and 1 or 0))
    assert.matches('field "text" is missing', failures[1], 1, true)
    assert.matches("the row is the string 'b', expected a table", failures[2], 1, true)
  end)

  it("reports what was cut off", function()
    local list = { "short", ("long "):rep(200), "short again" }
    local cut = {}
    for _, _, _, dropped in q:stream(list) do
      cut[#cut + 1] = dropped or 0
    end
    local _, batch = q:embed(list)
    assert.are.same({ 0, batch.truncated[1].dropped, 0 }, cut)
  end)

  it("pulls no further than a window, and waits for nobody", function()
    local pulled = 0
    local function endless()
      pulled = pulled + 1
      return "text " .. pulled
    end
    local next_row = q:stream(endless, { window = 8 })
    for _ = 1, 8 do
      next_row()
    end
    assert.are.equal(8, pulled)
    next_row()
    assert.are.equal(16, pulled)

    pulled = 0
    next_row = q:stream(endless, { window = 1000, bytes = 20 })
    next_row()
    assert.are.equal(4, pulled) -- "text 1" to "text 3" have 18 bytes: one more, and no further
  end)

  it("pulls no further, either, if what the rows hold besides is large", function()
    for _, field in ipairs { "text", "missing" } do
      local pulled = 0
      q:stream(function()
        pulled = pulled + 1
        return { text = "a", other = { ("x"):rep(100) } }
      end, { field = field, bytes = 64 })()
      assert.are.equal(11, pulled) -- 16 times 64 bytes
    end
    local row = { text = "a" }
    row.itself = row
    for came, answer in q:stream({ row }, { field = "text" }) do
      assert.are.equal(row, came)
      assert.is_true(q:embed("a"):equals(answer))
    end
  end)

  it("answers what has come when the next row is not there", function()
    local pulled = 0
    local next_row = q:stream(function()
      pulled = pulled + 1
      return "text"
    end, { ready = function() return pulled % 3 ~= 0 end })
    next_row()
    assert.are.equal(3, pulled)
  end)

  it("works inside coroutines: the iterator may wait, and the loop's body", function()
    local rows = coroutine.wrap(function()
      for i = 1, 5 do
        coroutine.yield("text " .. i)
      end
    end)
    local consumer = coroutine.wrap(function()
      for row, answer in q:stream(rows, { window = 2 }) do
        coroutine.yield(row, #answer)
      end
    end)
    local first, width = consumer()
    assert.are.same({ "text 1", 32 }, { first, width })
    assert.are.equal("text 2", (consumer()))

    -- An iterator that yields to the scheduler that runs the stream.
    local waits = 0
    local task = coroutine.create(function()
      local seen, i = {}, 0
      local function waiting()
        coroutine.yield "wait"
        i = i + 1
        return i <= 3 and "text " .. i or nil
      end
      for row in q:stream(waiting, { window = 2 }) do
        seen[#seen + 1] = row
      end
      return table.concat(seen, ",")
    end)
    local result
    repeat
      local ok, came = coroutine.resume(task)
      assert.is_true(ok, came)
      result, waits = came, waits + (came == "wait" and 1 or 0)
    until coroutine.status(task) == "dead"
    assert.are.same({ "text 1,text 2,text 3", 4 }, { result, waits })
  end)

  it("of several models may be at work at once", function()
    local a, b = q:stream(texts(20), { window = 3 }), classifier:stream(texts(20), { window = 5 })
    local vectors, labels = q:embed(texts(20)), classifier:classify(texts(20))
    for i = 1, 20 do
      local _, vector = a()
      local _, label = b()
      assert.is_true(vectors[i]:equals(vector))
      assert.are.same(labels[i].logits, label.logits)
    end
  end)

  it("gives the answers to what came before the iterator failed, then the failure", function()
    local i = 0
    local next_row = q:stream(function()
      i = i + 1
      return i < 4 and "text" or error("the disk is gone", 0)
    end)
    for _ = 1, 3 do
      assert.are.equal("text", (next_row()))
    end
    assert.has_error(next_row, "the disk is gone")
    assert.has_error(next_row, "the disk is gone")

    next_row = q:stream({ "text" }, { ready = function() error("the disk is gone", 0) end })
    assert.are.equal("text", (next_row()))
    assert.has_error(next_row, "the disk is gone")
  end)

  it("ends with the interrupt, which is no row's failure", function()
    local next_row = q:stream(texts(4))
    pgee.C.pgee_interrupt(15)
    local ok, message = pcall(next_row)
    local number = pgee.C.pgee_interrupted()
    pgee.C.pgee_interrupt(0)
    assert.is_false(ok)
    assert.matches("interrupted", message)
    assert.are.equal(15, number)
  end)

  it("refuses at once what no row could change", function()
    for _, case in ipairs {
      { {}, { task = "nothing" }, "stream: task is the string 'nothing', expected one of" },
      { {}, { fild = "x" }, "stream has no option fild" },
      { 5, {}, "the rows are 5, expected an iterator or a list" }, { {}, { field = 5 }, "field is 5, expected a name" },
      { {}, { window = 0 }, "window is 0, expected a number of at least 1" }, { {}, { bytes = "x" }, "bytes is the string 'x'" },
      { {}, { task = "classify" }, "classifier" },
    } do
      local ok, message = pcall(function() return q:stream(case[1], case[2])() end)
      assert.is_false(ok, case[3])
      assert.matches(case[3], message, 1, true)
    end
    local ok, message = pcall(function() q.stream {} end)
    assert.is_false(ok)
    assert.matches("stream is a method of a model", message, 1, true)
  end)

  it("holds nothing back: its vectors are freed as they are released", function()
    for _, answer in q:stream(texts(10)) do
      answer:release()
    end
    assert.are.equal(0, (live.during(function()
      for _, answer in q:stream(texts(200), { window = 10 }) do
        answer:release()
      end
    end)))
  end)

  it("gives the same in several Lua states of one process", function()
    ffi.cdef [[
      typedef struct lua_State lua_State;
      lua_State *luaL_newstate(void);
      void luaL_openlibs(lua_State *L);
      int luaL_loadstring(lua_State *L, const char *text);
      int lua_pcall(lua_State *L, int arguments, int results, int handler);
      const char *lua_tolstring(lua_State *L, int index, size_t *length);
      void lua_close(lua_State *L);
    ]]
    local chunk = ([[
      package.path, package.cpath = %q, %q
      local perigee = require "perigee"
      local q = perigee.load(%q):quantize { activations = "dynamic" }
      local sums = {}
      for row, vector in q:stream({ "a text", "another" }) do
        sums[#sums + 1] = ("%%.9g %%.9g"):format(vector[1], vector[32])
      end
      q.model:release()
      return table.concat(sums, ";")
    ]]):format(package.path, package.cpath, models.path "embedder")
    local results = {}
    for i = 1, 2 do
      local L = ffi.C.luaL_newstate()
      ffi.C.luaL_openlibs(L)
      assert(ffi.C.luaL_loadstring(L, chunk) == 0)
      local status = ffi.C.lua_pcall(L, 0, 1, 0)
      results[i] = ffi.string(ffi.C.lua_tolstring(L, -1, nil))
      assert.are.equal(0, status, results[i])
      ffi.C.lua_close(L)
    end
    local vectors, want = q:embed { "a text", "another" }, {}
    for i = 1, 2 do
      want[i] = ("%.9g %.9g"):format(vectors[i][1], vectors[i][32])
    end
    assert.are.same({ table.concat(want, ";"), table.concat(want, ";") }, results)
  end)

  it("raises what is wrong with the process, before the first row and between rows", function()
    local model = perigee.load(models.path "embedder"):quantize { activations = "dynamic" }
    local runner, runs, broken = nil, 0, false
    local function use()
      model:embed "text"
      runner = model.runners.embed
      local run = runner.run
      function runner.run(...)
        runs = runs + 1
        if broken then
          error("no memory", 0)
        end
        return run(...)
      end
    end
    use()
    broken = true
    assert.error_matches(function() model:stream({ "a" }, { task = "embed" }) end, "no memory")
    assert.error_matches(function() model:stream({}, { task = "embed" }) end, "no memory")
    broken = false
    local answers, failures = 0, 0
    local ok, message = pcall(function()
      for _, answer, failure in model:stream(texts(20), { task = "embed", window = 4 }) do
        answers, failures = answers + (answer and 1 or 0), failures + (failure and 1 or 0)
        broken = answers == 8
      end
    end)
    assert.are.same({ false, "no memory", 8, 0 }, { ok, message, answers, failures })
    broken, runs = false, 0
    for _, _, failure in model:stream({ "a", 3, "b" }, { task = "embed" }) do
      failures = failures + (failure and 1 or 0)
    end
    assert.are.equal(1, failures) -- of a row alone
    model:release()
  end)

  it("refuses a ready that cannot be called", function()
    assert.error_matches(function() q:stream({}, { ready = true }) end, "stream: ready is true, expected a function")
  end)
end)
