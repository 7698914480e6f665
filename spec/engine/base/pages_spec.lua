-- Memory in huge pages: copies, counting, giving back; and what a quantized model does with it.
local engine = require "spec.support.engine"
local ffi = require "ffi"
local live = require "spec.support.live"
local models = require "spec.support.models"
local packed = require "perigee.packed"
local perigee = require "perigee"
local tensor = require "perigee.tensor"

-- Whether this kernel gives huge pages to those who ask.
local function given()
  local file = io.open "/sys/kernel/mm/transparent_hugepage/enabled"
  local text = file and file:read "*a" or "never"
  return not text:find("[never]", 1, true)
end

describe("huge pages", function()
  it("hold copies of tensors of every shape and type", function()
    for _, t in ipairs {
      engine.matrix(5, 7), engine.vector(70000), tensor.new("U8", { 3, 65 }), tensor.new("F32", { 0, 4 }), tensor.new("I8", 1),
      engine.matrix(9, 8):rows(2, 4),
    } do
      local copy = t:huge()
      assert.is_true(copy:equals(t))
      assert.equal(0, tonumber(ffi.cast("uintptr_t", (copy:pointer())) % 64))
      copy:release()
    end
  end)

  it("are counted, and given back one by one in any order", function()
    local before, asked = live(), packed.huge_pages()
    local list, state = {}, 5
    for i = 1, 40 do
      state = state * 16807 % 2147483647
      local t = engine.vector(1 + state % 700000, i)
      list[i] = { t:huge(), t }
    end
    assert.is_true(packed.huge_pages() > asked + 40 * 4)
    for i = 1, 40 do
      local k = i % 2 == 1 and i or 42 - i
      assert.is_true(list[k][1]:equals(list[k][2]), "block " .. k)
      list[k][1]:release()
      list[k][2]:release()
    end
    assert.are.same({ before, asked }, { live(), (packed.huge_pages()) })
  end)

  it("are what the kernel says it gave", function()
    live()
    local _, before = packed.huge_pages()
    local t = tensor.new("U8", 8 * 2 ^ 20)
    local copy = t:huge()
    local asked, granted = packed.huge_pages()
    assert.is_true(asked >= 8 * 2 ^ 20)
    if not given() then
      assert.equal(0, granted)
      pending "huge pages are switched off here"
    else
      assert.is_true(granted >= before and granted % 2 ^ 21 == 0, ("%d granted"):format(granted))
    end
    copy:release()
    t:release()
  end)

  it("change no bit of a model, and are told of", function()
    live()
    local model = perigee.load(models.path "gelu")
    local list = models.random_inputs(6, 20, model.vocabulary)
    local stats = model:calibrate(list, { progress = false })
    for _, activations in ipairs { "static", "dynamic" } do
      local q = model:quantize { stats = stats, activations = activations }
      local want = q:hidden(list)
      assert.is_nil(q:memory().huge)
      assert.not_matches("huge", tostring(q:explain()) .. q:recipe())
      q.pages = "huge"
      assert.is_true(want:equals((q:hidden(list))))
      assert.matches("pages = \"huge\"", q:recipe(), 1, true)
      assert.matches("huge pages: [%d.]+ MB of weights lie in memory that asks for them, the kernel gave [%d.]+ MB",
        tostring(q:explain()))
      assert.is_number(q:memory().huge)
      q.alpha = 0.3
      q:undo()
      assert.is_true(want:equals((q:hidden(list))))
      q:undo()
      q:release()
      assert.equal(0, (packed.huge_pages()))
    end
    assert.error_matches(function() model:quantize { pages = "large" } end, 'pages is "large", expected "normal" or "huge"', 1,
      true)
  end)
end)
