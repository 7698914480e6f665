-- An INT8 model returns the same bits for a text with every batch, number of threads, ISA and compiler. (`make exact` compares
-- builds by gcc and clang, -O1 to -O3.)
local digest = require "spec.support.digest"
local exact = require "spec.golden.exact"
local ffi = require "ffi"
local models = require "spec.support.models"
local pgee = require "perigee.ffi"
local C, check = pgee.C, pgee.check

local golden = exact.golden()

-- Under sanitizers, which look for faults of memory, a few models of odd sizes are enough. `make test` and `make exact` compare
-- all of them.
local HARD = os.getenv "PERIGEE_HARD"
local THREADS = HARD and { 1, 7 } or { 1, 2, 7 }
local BATCH_MODES = HARD and { "static", "dynamic-sequence", "dynamic-attention" } or exact.mode_names

-- The modes that a model is compared in. Those of settings that few models need are compared for three models; `make exact`
-- compares them for all.
local FEW = {
  ["static-bf16"] = true, ["tables-f16"] = true, ["tables-int8"] = true, ["static-shift"] = true,
  ["static-shift-attention"] = true,
}
local function modes_of(name, modes)
  local list = {}
  for _, mode in ipairs(modes) do
    list[#list + 1] = (not FEW[mode] or name == "tiny" or name == "relu" or name == "mpnet") and mode or nil
  end
  return list
end

local function digested(slow)
  return HARD and slow and { "tiny", "relu" } or models.small
end

local function batched(slow)
  return HARD and (slow and { "tiny" } or { "tiny", "relu", "mpnet" }) or slow and { "tiny", "relu" } or models.small
end

-- Sets ISA and threads, calls f, and puts both back.
local function with(isa, threads, f)
  local isa_before, threads_before = ffi.new "int[1]", ffi.new "int[1]"
  check(C.pgee_isa(isa_before))
  check(C.pgee_threads(threads_before))
  check(C.pgee_isa_set(isa))
  check(C.pgee_threads_set(threads))
  local ok, failure = pcall(f)
  check(C.pgee_isa_set(isa_before[0]))
  check(C.pgee_threads_set(threads_before[0]))
  assert(ok, failure)
end

-- Calls f(number, name, slow) for every ISA that runs. On a slow one, a model of real size takes too long.
local SLOW = { [tonumber(C.PGEE_REF)] = true, [tonumber(C.PGEE_AMX_MODEL)] = true }
local function each_isa(f)
  for isa = 0, C.PGEE_ISAS - 1 do
    local name = ffi.string(C.pgee_isa_name(isa))
    if C.pgee_isa_runs(isa) == 1 then
      f(isa, name, SLOW[isa])
    else
      pending(("on %s: %s"):format(name, ffi.string(C.pgee_isa_reason(isa))))
    end
  end
end

-- Runs all inputs as one batch. Returns the digest of each input's rows.
local function rows(q, inputs)
  local hidden, batch = q:hidden(inputs)
  local list = {}
  for i = 1, #inputs do
    local own = hidden:rows(batch.starts[i - 1] + 1, batch.starts[i])
    list[i] = digest.new():tensor(own):text()
    own:release()
  end
  hidden:release()
  return list
end

-- The same in batches of n. `order` lists indices of inputs in the order in which they run.
local function in_batches(q, inputs, n, order)
  local list = {}
  for first = 1, #order, n do
    local batch = {}
    for i = first, math.min(first + n - 1, #order) do
      batch[#batch + 1] = inputs[order[i]]
    end
    for i, text in ipairs(rows(q, batch)) do
      local input = order[first + i - 1]
      list[input] = list[input] or text
      if list[input] ~= text then
        list[input] = "differs from itself"
      end
    end
  end
  return list
end

local function in_order(count, times)
  local order = {}
  for i = 0, count * times - 1 do
    order[i + 1] = i % count + 1
  end
  return order
end

local function shuffled(count)
  local order, state = in_order(count, 1), 5
  for i = count, 2, -1 do
    state = (state * 1103515245 + 12345) % 2 ^ 31
    local j = 1 + math.floor(state / 2 ^ 31 * i)
    order[i], order[j] = order[j], order[i]
  end
  return order
end

-- Asserts that every text has the bits of `want` on an ISA: alone, in batches of 3 and 64, and shuffled, with each number of
-- THREADS.
local function check_batches(q, inputs, want, isa)
  for _, threads in ipairs(THREADS) do
    with(isa, threads, function()
      local function same(what, list)
        for i = 1, #want do
          assert.equal(want[i], list[i], ("input %d, %s, %d threads"):format(i, what, threads))
        end
      end
      same("alone", in_batches(q, inputs, 1, in_order(#inputs, 1)))
      same("in batches of 3", in_batches(q, inputs, 3, in_order(#inputs, 1)))
      same("in a batch of 64", in_batches(q, inputs, 64, in_order(#inputs, math.ceil(64 / #inputs))))
      same("shuffled", in_batches(q, inputs, 3, shuffled(#inputs)))
    end)
  end
end

describe("the digests", function()
  it("are there for every small model and the demo's", function()
    for _, name in ipairs { "minilm", unpack(models.small) } do
      assert.is_string(golden[name .. " fp32 statistics"], name)
      for _, mode in ipairs(exact.mode_names) do
        assert.is_string(golden[("%s %s hidden"):format(name, mode)], name)
      end
    end
  end)

  it("differ from settings to settings: each of them does something", function()
    local f16 = 0 -- models whose tables change when they are rounded to F16: the tables of the others are F16 in the file
    for _, name in ipairs { "minilm", unpack(models.small) } do
      local seen = {}
      for _, mode in ipairs(exact.mode_names) do
        local value = golden[("%s %s hidden"):format(name, mode)]
        local same = seen[value]
        if mode == "tables-f16" then
          f16, same = f16 + (same and 0 or 1), same ~= "dynamic" and same or nil
        end
        assert.is_nil(same, ("%s: %s has the bits of %s"):format(name, mode, tostring(same)))
        seen[value] = mode
      end
    end
    assert.is_true(f16 >= 3)
  end)

  it("see a change of one setting, and a spec fails by it", function()
    local wrong = {}
    for key, value in pairs(golden) do
      wrong[key] = value
    end
    wrong["tiny static hidden"] = wrong["tiny static-symmetric hidden"]
    assert.equal(1, #exact.differences("tiny", wrong))
    assert.equal(0, #exact.differences("tiny", golden))
  end)
end)

each_isa(function(isa, isa_name, slow)
  describe("on " .. isa_name, function()
    for _, name in ipairs(digested(slow)) do
      it("statistics, packed weights and hidden states have the golden bits: " .. name, function()
        with(isa, 2, function()
          assert.same({}, exact.differences(name, golden, modes_of(name, exact.mode_names)))
        end)
      end)
    end

    for _, name in ipairs(batched(slow)) do
      it("each text has its bits, whatever the batch and the threads: " .. name, function()
        local opened = exact.open(name)
        for _, mode in ipairs(modes_of(name, BATCH_MODES)) do
          local q = exact.quantize(opened, mode)
          check_batches(q, opened.inputs, in_batches(q, opened.inputs, 1, in_order(#opened.inputs, 1)), isa)
          q:release()
        end
        opened.stats:release()
        opened.model:release()
      end)
    end
  end)
end)

-- Makes q use the kernel for its products wherever the kernel is a candidate. Returns for how many shapes.
local function force(q, kernel)
  local chosen = q:select { cache = false, time = function()
    return kernel == "onednn" and 100 or 0
  end }
  local count = 0
  for _, choice in pairs(chosen.shapes) do
    count = count + (choice.kernel == kernel and 1 or 0)
  end
  return count
end

describe("the kernel that is selected", function()
  for _, name in ipairs(HARD and { "tiny", "relu", "mpnet" } or models.small) do
    it("changes no bit: " .. name, function()
      local opened = exact.open(name)
      for _, mode in ipairs(modes_of(name, exact.mode_names)) do
        local q = exact.quantize(opened, mode)
        for _, kernel in ipairs { "native", "onednn" } do
          local count = force(q, kernel)
          assert.is_true(count > 0 or kernel == "onednn")
          assert.equal(golden[("%s %s hidden"):format(name, mode)], exact.hidden(q, opened.inputs), kernel)
        end
        q:release()
      end
      opened.stats:release()
      opened.model:release()
    end)
  end
end)

describe("the demo's checkpoint", function()
  local path, why = models.demo()
  if not path or HARD then
    pending(why or "too slow under sanitizers")
    return
  end
  local opened
  local texts = models.texts("recipes/data/calibration.txt", 64, 80)

  setup(function()
    opened = exact.open "minilm"
  end)

  teardown(function()
    opened.stats:release()
    opened.model:release()
  end)

  it("has the golden bits whichever kernel is selected", function()
    local q = exact.quantize(opened, "static")
    for _, kernel in ipairs { "native", "onednn" } do
      force(q, kernel)
      assert.equal(golden["minilm static hidden"], exact.hidden(q, opened.inputs), kernel)
    end
    q:release()
  end)

  each_isa(function(isa, isa_name, slow)
    it("has the golden bits on " .. isa_name, function()
      with(isa, 2, function()
        assert.same({}, exact.differences("minilm", golden, slow and { "static", "dynamic" } or modes_of("minilm",
          exact.mode_names)))
      end)
    end)

    for _, mode in ipairs { "static", "dynamic" } do
      it(("gives each text its bits, whatever the batch and the threads: %s on %s"):format(mode, isa_name), function()
        local q = exact.quantize(opened, mode)
        local want = in_batches(q, texts, 1, in_order(#texts, 1))
        if slow then
          with(isa, 7, function()
            assert.same({ unpack(want, 1, 3) }, rows(q, { unpack(texts, 1, 3) }))
          end)
        else
          check_batches(q, texts, want, isa)
        end
        q:release()
      end)
    end
  end)
end)
