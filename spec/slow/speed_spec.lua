-- Speed that must not get lost. Other processes change these times less than they change elapsed time: they are processor time,
-- and the minimum of several runs counts.
local engine = require "spec.support.engine"
local models = require "spec.support.models"
local nearest = require "perigee.base.nearest"
local perigee = require "perigee"
local random = require "perigee.checkpoint.random"
local skip = require "spec.support.skip"
local it = os.getenv "PERIGEE_HARD" and skip "speed under sanitizers is another" or it
local C = require("spec.support.native").cdef [[
  int usleep(unsigned microseconds);
  double spec_cpu_seconds(void);
  int64_t spec_rounds(int threads, int64_t rounds);
]]

-- The minimum processor time of f(1) ... f(count).
local function min_seconds(count, f)
  local min = math.huge
  for i = 1, count do
    local began = os.clock()
    f(i)
    min = math.min(min, os.clock() - began)
  end
  return min
end

describe("the time of a change", function()
  local threads

  before_each(function()
    threads = perigee.threads()
    perigee.threads(1)
  end)
  after_each(function() perigee.threads(threads) end)

  local function quantized(name)
    local own = perigee.load(random.checkpoint(name))
    local seen = own:calibrate(models.random_inputs(2, 12, 30000, 3), { progress = false })
    return own:quantize { stats = seen }, function(large)
      large:release()
      seen:release()
      own:release()
      collectgarbage()
    end
  end

  it("is below 100 ms for a whole MiniLM", function()
    local large, release = quantized "minilm"
    local seconds = min_seconds(6, function(i) large:set { alpha = i / 10 } end)
    release(large)
    assert.is_true(seconds < 0.1, ("%.3f s"):format(seconds))
  end)

  it("is below 300 ms for a layer of BERT-large, and 1/6 of 4 s for four of its 24 layers", function()
    local name = "four layers of bert-large"
    random.configs[name] = setmetatable({ num_hidden_layers = 4 }, { __index = random.configs["bert-large"] })
    local large, release = quantized(name)
    random.configs[name] = nil
    local layer = min_seconds(5, function(i) large:set("encoder.layer.2.*", { alpha = i / 10 }) end)
    local all = min_seconds(5, function(i) large:set { alpha = i / 10 + 0.05 } end)
    release(large)
    assert.is_true(layer < 0.3, ("%.3f s"):format(layer))
    assert.is_true(all < 4 / 6, ("%.3f s"):format(all))
  end)
end)

describe("the suggestion of a name", function()
  it("takes no time for a word of a megabyte", function()
    local word, names = ("a"):rep(2 ^ 20), { ("a"):rep(100) }
    assert.is_true(min_seconds(5, function() assert.is_nil(nearest.word(word, names)) end) < 0.05)
  end)
end)

describe("a team of threads", function()
  it("uses less than a millisecond of CPU in an idle second", function()
    engine.with_threads(7, function() C.spec_rounds(7, 10) end)
    local used
    for _ = 1, 5 do -- on a busy machine it takes the threads a while to come to rest
      C.usleep(10000)
      local before = C.spec_cpu_seconds()
      C.usleep(1000000)
      used = C.spec_cpu_seconds() - before
      if used < 0.001 then
        break
      end
    end
    assert.is_true(used < 0.001, ("%.4f s"):format(used))
  end)
end)
