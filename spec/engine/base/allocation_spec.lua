-- Every allocation of the library fails once: the first, the second, and so on until the work succeeds. Each failure must be a
-- message about memory, and leave nothing behind once the handles are gone. Only the hard build (make hard) can be told to fail.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local checkpoint = require "perigee.checkpoint"
local safetensors = require "perigee.safetensors"
local packed = require "perigee.packed"
local observer = require "perigee.observer"
local quant = require "perigee.quant"
local linear = require "perigee.linear"
local plan = require "perigee.plan"
local tokenizer = require "perigee.tokenizer"
local json = require "perigee.base.json"
local files = require "spec.support.files"
local live = require "spec.support.live"
local skip = require "spec.support.skip"
local C = pgee.C

local hard = os.getenv "PERIGEE_HARD"
local it = hard and it or skip "allocations fail on request in `make hard` alone"
if hard and not pcall(function() return C.pgee_fail_allocation end) then
  ffi.cdef "void pgee_fail_allocation(int64_t n);"
end

-- nil, or the message of work's failure. Keeps nothing that it returns.
local function failure(work)
  local ok, message = pcall(work)
  return not ok and tostring(message) or nil
end

-- Runs `work` with the n-th allocation and all after it failing, n = 1, 2, ... Returns how many failures it took to succeed.
local function fails_cleanly(work)
  work()
  local before = live()
  for n = 1, 1e5 do
    C.pgee_fail_allocation(n)
    local message = failure(work)
    C.pgee_fail_allocation(0)
    if not message then
      assert.equal(before, live())
      return n - 1
    end
    assert.truthy(message:find("out of memory", 1, true), message)
    assert.equal(before, live(), ("bytes are left after the failure of allocation %d"):format(n))
  end
  error "it never succeeded"
end

describe("when an allocation fails,", function()
  it("the check itself sees work that loses memory", function()
    local kept = {}
    local function loses()
      kept[#kept + 1] = tensor.new("F32", { 4 })
      tensor.new("F32", { 4 })
    end
    assert.error_matches(function() fails_cleanly(loses) end, "bytes are left")
  end)

  it("a tensor and its views", function()
    local function work()
      local t = tensor.from { { 1, 2 }, { 3, 4 } }
      return t:rows(2, 2), t[1]
    end
    assert.is_true(fails_cleanly(work) >= 3)
  end)

  it("a safetensors file, its tensors and their copies", function()
    local list = {}
    for i = 1, 70 do -- more than the reader's lists begin with room for
      list[i] = { "layer." .. i, "F16", { 2, 1 }, "abcd" }
    end
    local path = files.write(files.pack(list))
    finally(files.clean)
    local function work()
      local f = safetensors.open(path)
      return f:tensor("layer.7"):f32(), f:tensor("layer.70")[2]
    end
    assert.is_true(fails_cleanly(work) >= 10)
  end)

  it("a safetensors file that is written, copied, verified, and packed weights over it", function()
    local w = packed.new(tensor.from { { 1, 2, 3 }, { 4, 5, 6 } })
    local parts, path = w:parts(), files.folder {} .. "/f"
    local tensors = { bytes = parts.bytes, scales = parts.scales, sums = parts.sums, one = tensor.from { 1 } }
    finally(files.clean)
    local function work()
      safetensors.write(path, tensors, { key = ("value"):rep(2000) })
      local f = safetensors.open(path, { copy = true })
      f:verify()
      f:checksum "one"
      return packed.over { N = 2, K = 3, bytes = f:tensor "bytes", scales = f:tensor "scales", sums = f:tensor "sums" }
    end
    assert.is_true(fails_cleanly(work) >= 20)
    local pipe = io.popen("ls -A " .. path:match "^(.*)/")
    assert.equal("f\n", pipe:read "*a")
    pipe:close()
  end)

  it("a checkpoint", function()
    local function work()
      return checkpoint.open("spec/golden/checkpoints/tiny"):tensor "embeddings.word_embeddings.weight"
    end
    assert.is_true(fails_cleanly(work) >= 6)
  end)

  it("a Unigram tokenizer, its image and a text", function()
    local golden = "spec/golden/tokenizer/"
    local dir = files.folder { ["tokenizer.json"] = json.text(golden .. "unigram.json") }
    finally(files.clean)
    local function work()
      local t = tokenizer.load(dir)
      return t:decode(tokenizer.from_image(t:image()):encode("caf\101\204\129 \239\172\129n ☃", "b").ids)
    end
    assert.is_true(fails_cleanly(work) >= 20)
  end)

  local W, V = tensor.from { { 1, 2, 3 }, { 4, 5, 6 } }, tensor.from { { 7, 8, 9 } }

  it("packed weights and what is read of them", function()
    local s = tensor.from { 1, 2, 3 }
    local function work()
      local w = packed.new({ W, V }, { smooth = s })
      local f = packed.new({ W, V }, { dtype = "f32" })
      return w.scales, w.sums, w:unpack(), w:multiplier(1), f:unpack(), quant.absmax { W, V }
    end
    assert.is_true(fails_cleanly(work) >= 20)
  end)

  it("the message about a weight that is not finite", function()
    local bad = tensor.from { { 1, 0 / 0 } }
    local function work()
      local ok, message = pcall(packed.new, bad)
      assert(not ok)
      if not message:find("column 2", 1, true) then
        error(message, 0)
      end
    end
    assert.is_true(fails_cleanly(work) >= 10)
  end)

  it("weights in huge pages", function()
    local function work()
      return packed.new(W, { pages = "huge" })
    end
    assert.is_true(fails_cleanly(work) >= 8)
  end)

  it("observers", function()
    local function work()
      local o = observer.new(3, { sample = 2, name = "site" }):update(W)
      return o.min, o.max, o:sample()
    end
    assert.is_true(fails_cleanly(work) >= 8)
  end)

  it("linears by hand, with scratch", function()
    local w = packed.new(W)
    local batch = plan.batch { { 1, 1 } }
    local function work()
      return linear(quant.quantize(W, { per = "sequence", batch = batch }), w, { requantize = quant.range(-1, 9) })
    end
    assert.is_true(fails_cleanly(work) >= 6)
  end)

  it("plans and workspaces", function()
    local function work()
      local p = plan.new()
      local x = p:buffer("F32", "tokens", 3)
      for _ = 1, 20 do -- more buffers and steps than their lists begin with room for
        local y = p:buffer("F32", "tokens", 3)
        p:embed { word = W, y = y }
        p:unit { x = y, y = y }
        x = y
      end
      p:linear { x = x, w = packed.new(tensor.from { { 1, 1, 1 } }, { dtype = "f32" }), y = p:buffer("F32", "tokens", 1) }
      p:seal { x }
      local w = p:workspace { tokens = 4, sequences = 2 }
      w:run(plan.batch { { 0, 1 }, { 1 } })
      return w:output(x)
    end
    assert.is_true(fails_cleanly(work) >= 70)
  end)
end)
