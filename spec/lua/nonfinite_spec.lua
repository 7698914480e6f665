-- Results that are not finite: an error that names the input and the first step, for every task, of a checkpoint and an artifact.
local ffi = require "ffi"
local artifacts = require "spec.support.artifacts"
local files = require "spec.support.files"
local models = require "spec.support.models"
local nans = require "spec.support.nans"
local perigee = require "perigee"
local safetensors = require "perigee.safetensors"
local tensor = require "perigee.tensor"

local FOLDER = "spec/golden/tasks/"
local TEXT, OTHER = "how many people live here", "a city"

-- For each task: a checkpoint, a function that calls the task, and a tensor of its head. A task that is not here takes a list of
-- texts, and draws its head over the hidden states of any checkpoint.
local TASKS = {
  embed = { "sentence", function(m) return m:embed { TEXT, OTHER } end },
  classify = { "nli", function(m) return m:classify { TEXT, OTHER } end, "classifier.bias" },
  rerank = { "cross", function(m) return m:rerank(TEXT, { OTHER, TEXT }) end, "classifier.bias" },
  zeroshot = { "nli", function(m) return m:zeroshot(TEXT, { labels = { "a", "b" } }) end, "classifier.bias" },
  qa = { "qa", function(m) return m:qa { question = TEXT, context = OTHER } end, "qa_outputs.bias" },
  ner = { "ner", function(m) return m:ner { TEXT, OTHER } end, "classifier.bias" },
  fill_mask = { "mlm", function(m) return m:fill_mask { "how [MASK] people", "a [MASK]" } end, "decoder.bias" },
}

local function refused(why, f, ...)
  local ok, message = pcall(f, ...)
  assert.is_false(ok)
  assert.matches(why, message)
end

-- A copy of the checkpoint in which f has changed the tensor whose name ends so, as F32.
local function with(name, suffix, f)
  local file, tensors, found = safetensors.open(FOLDER .. name .. "/model.safetensors"), {}, false
  for _, tensor_name in ipairs(file:names()) do
    tensors[tensor_name] = file:tensor(tensor_name)
    if tensor_name:sub(-#suffix) == suffix then
      found, tensors[tensor_name] = true, tensors[tensor_name]:f32()
      f(tensors[tensor_name])
    end
  end
  assert(found, suffix)
  local path = artifacts.path()
  safetensors.write(path, tensors)
  return models.variant(FOLDER .. name, { ["model.safetensors"] = models.read(path) })
end

describe("a result that is not finite", function()
  after_each(files.clean)

  for _, task in ipairs(perigee.tasks.names()) do
    local of = TASKS[task] or { "sentence", function(m) return m[task](m, { TEXT, OTHER }) end }
    local name, ask, head = of[1], of[2], of[3]

    it("is an error that names the first such step: " .. task .. " of a checkpoint", function()
      local model = perigee.load(with(name, "layer.1.output.dense.weight", function(t) t:set(3e38) end))
      refused("input 1: the model's result is not finite; the first step whose result is not finite is the linear "
        .. "[%w.]*layer%.1%.output%.dense %(step %d+ of %d+%)", ask, model)
    end)

    it("is one of an artifact: " .. task, function()
      local model = perigee.load(FOLDER .. name)
      local q = model:quantize { activations = "dynamic" }
      local parts = artifacts.parts(artifacts.save(q))
      q:release()
      local norm, bias
      for tensor_name, t in pairs(parts.tensors) do
        norm = tensor_name:find "layer%.1%.output%.LayerNorm%.bias$" and tensor_name or norm
        bias = head and t.dtype == "F32" and tensor_name:sub(-#head) == head and tensor_name or bias
      end
      for _, broken in ipairs { norm or false, bias or false } do
        local kept = parts.tensors[broken]
        for _, bits in ipairs(broken and { 0xFFD00001, 0xFFA00001, 0xFFFC0000, 0xFFF80001, 0x7F800001 } or {}) do
          local t = kept:copy()
          ffi.cast("uint32_t *", (t:pointer()))[0] = bits
          parts.tensors[broken] = t
          local a = perigee.open(artifacts.write(parts), { verify = true })
          refused("input %d: the model's result is not finite; the first step whose result is not finite is the ", ask, a)
        end
        parts.tensors[broken] = kept
      end
      assert.is_truthy(norm)
      assert.equal(head ~= nil, bias ~= nil)
      ask(perigee.open(artifacts.write(parts)))
    end)
  end

  it("names the input", function()
    local model = perigee.load(FOLDER .. "sentence")
    local ids = model:tokens(OTHER).ids
    model:release()
    model = perigee.load(with("sentence", "word_embeddings.weight", function(t)
      t[ids[2] + 1][1], t[ids[2] + 1][2] = 3e38, 3e38
    end))
    assert.is_nil(model:embed { TEXT, TEXT }:first_nonfinite())
    refused("^[^\n]*input 3: .* is the norm %(step 2 of", model.embed, model, { TEXT, TEXT, OTHER, TEXT })
    refused("input 1: ", model.embed, model, OTHER)
    refused("input 2: ", model.hidden, model, { TEXT, OTHER })
    refused("input 2: ", model.layers, model, { TEXT, OTHER })
  end)

  it("is found by running step by step, and a run afterwards is as before", function()
    local plan = require "perigee.plan"
    local p = plan.new()
    local x, y, z = p:buffer("F32", "tokens", 4), p:buffer("F32", "tokens", 4), p:buffer("F32", "sequences", 4)
    local words = tensor.from { { 1, 2, 3, 4 }, { 3e38, 0, 0, 0 } }
    p:embed { word = words, position = tensor.from { { 0, 0, 0, 0 }, { 3e38, 0, 0, 0 } }, y = x }
    p:unit { x = x, y = y }
    p:pool { x = x, mode = "mean", y = z }
    p:seal { y, z }
    local space = p:workspace { tokens = 4, sequences = 2 }
    local good, bad = plan.batch { { 0, 0 }, { 1 } }, plan.batch { { 0 }, { 0, 1 } }
    assert.is_nil(space:first_nonfinite(good))
    assert.equal(1, space:first_nonfinite(bad))
    assert.is_nil(space:first_nonfinite(plan.batch {}))
    assert.is_nil(space:run(good):output(z):first_nonfinite())
  end)

  it("is no number that a NaN's bits make of it", function()
    assert.is_true(nans.is(nans.tensor("F32", { 0xFFD00001 })[1]))
  end)
end)
