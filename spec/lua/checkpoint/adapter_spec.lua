-- Adapters (perigee.checkpoint.adapter): which files are refused, and where the base model is. Their answers are in
-- spec/golden/companions_spec.lua.
local cjson = require "cjson"
local checkpoint = require "perigee.checkpoint"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local tensor = require "perigee.tensor"

local function f32(values)
  local t = tensor.from(values)
  local bytes = require("ffi").string((t:pointer()), 4 * #values * (type(values[1]) == "table" and #values[1] or 1))
  return bytes
end

local BASE = "base_model.model.bert."

-- A base model of one linear [2][3] and its bias.
local function base()
  return files.pack {
    { "bert.a.weight", "F32", { 2, 3 }, f32 { { 1, 2, 3 }, { 4, 5, 6 } } }, { "bert.a.bias", "F32", { 2 }, f32 { 1, 2 } },
  }
end

local A = { BASE .. "a.lora_A.weight", "F32", { 1, 3 }, f32 { { 1, 0, 2 } } }
local B = { BASE .. "a.lora_B.weight", "F32", { 2, 1 }, f32 { { 3 }, { 5 } } }

-- The folder of an adapter, its changes to adapter_config.json, its tensors.
local function folder(changes, tensors, more)
  local config = { peft_type = "LORA", r = 1, lora_alpha = 2, base_model_name_or_path = "some/model" }
  for key, value in pairs(changes or {}) do
    config[key] = value
  end
  local contents = {
    ["config.json"] = '{"model_type": "bert"}', ["model.safetensors"] = base(), ["adapter_config.json"] = cjson.encode(config),
    ["adapter_model.safetensors"] = files.pack(tensors or { A, B }),
  }
  for name, bytes in pairs(more or {}) do
    contents[name] = bytes or nil
  end
  return files.folder(contents)
end

local function weight(...)
  return checkpoint.open(folder(...)):tensor("a.weight"):totable()
end

local function refused(...)
  local dir = folder(...)
  local ok, message = pcall(function() checkpoint.open(dir):tensor "a.weight" end)
  assert.is_false(ok)
  return (message:gsub(dir, "DIR"))
end

describe("An adapter", function()
  after_each(files.clean)

  it("adds its product to a weight", function()
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight())
    assert.same({ { 2.5, 2, 6 }, { 6.5, 5, 11 } }, weight { lora_alpha = 0.5 })
    local A2, B2 = { A[1], "F32", { 4, 3 }, f32 { { 1, 0, 2 }, { 0, 0, 0 }, { 0, 0, 0 }, { 0, 0, 0 } } },
      { B[1], "F32", { 2, 4 }, f32 { { 3, 1, 1, 1 }, { 5, 1, 1, 1 } } }
    assert.same({ { 4, 2, 9 }, { 9, 5, 16 } }, weight({ r = 4, lora_alpha = 4 }, { A2, B2 }))
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight({ r = 4, use_rslora = true, lora_alpha = 4 }, { A2, B2 }))
  end)

  it("finds the rank and the scale of a module by patterns", function()
    for _, pattern in ipairs { "a", "bert.a", "^bert.a" } do
      assert.same({ { 2.5, 2, 6 }, { 6.5, 5, 11 } }, weight { alpha_pattern = { [pattern] = 0.5 } })
      assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight { r = 8, rank_pattern = { [pattern] = 1 } })
    end
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight { alpha_pattern = { ["^a"] = 0.5, b = 3, ["t.a"] = 4 } })
    assert.equal("'DIR/adapter_config.json': alpha_pattern has 3 for 'a|b', expected numbers for names of modules",
      refused { alpha_pattern = { ["a|b"] = 3 } })
    assert.equal("'DIR/adapter_config.json': r of bert.a is 2, its lora_A has 1 rows", refused { r = 2 })
    assert.equal("'DIR/adapter_config.json': lora_alpha is the string 'x', expected a number above 0",
      refused { lora_alpha = "x" })
    assert.equal("'DIR/adapter_config.json': rank_pattern is the string 'x', expected an object", refused { rank_pattern = "x" })
    assert.equal("'DIR/adapter_config.json': rank_pattern is a list or an object, expected an object",
      refused { rank_pattern = { 1 } })
    assert.equal("'DIR/adapter_config.json': two keys of alpha_pattern match 'bert.a', with different values",
      refused { alpha_pattern = { a = 1, ["bert.a"] = 2 } })
    assert.equal("'DIR/adapter_config.json': use_rslora is 1, expected a boolean", refused { use_rslora = 1 })
  end)

  it("scales rows, adds to biases and replaces tensors", function()
    local magnitude = { BASE .. "a.lora_magnitude_vector", "F32", { 2 }, f32 { 5, 2 } }
    local rows = weight({ use_dora = true }, { A, B, magnitude })
    for i, length in ipairs { 5, 2 } do
      local sum = 0
      for k, v in ipairs(rows[i]) do
        sum = sum + v * v
        assert.near(({ { 7, 2, 15 }, { 14, 5, 26 } })[i][k] * length / math.sqrt(i == 1 and 278 or 897), v, 1e-5)
      end
      assert.near(length, math.sqrt(sum), 1e-5)
    end
    local c = checkpoint.open(folder({ lora_bias = true }, { A, B, { BASE .. "a.lora_B.bias", "F32", { 2 }, f32 { 1, 10 } } }))
    assert.same({ 3, 22 }, c:tensor("a.bias"):totable())
    assert.equal("'DIR/adapter_config.json': use_dora is true, but there is no lora_magnitude_vector of 'a.weight'",
      refused { use_dora = true })
    assert.equal("'DIR/adapter_config.json': use_dora is false, but there is a lora_magnitude_vector of 'a.weight'",
      refused(nil, { A, B, magnitude }))
    assert.equal("'DIR/adapter_config.json': lora_bias is false, but there is a bias of lora_B for 'a.bias'",
      refused(nil, { A, B, { BASE .. "a.lora_B.bias", "F32", { 2 }, f32 { 1, 10 } } }))
    c = checkpoint.open(folder(nil, { A, B, { BASE .. "a.bias", "F32", { 2 }, f32 { 7, 8 } },
      { "base_model.model.classifier.modules_to_save.default.weight", "F32", { 1 }, f32 { 9 } } }))
    assert.same({ 7, 8 }, c:tensor("a.bias"):totable())
    assert.same({ 9 }, c:tensor("classifier.weight"):totable())
  end)

  it("changes a table by the product the other way round", function()
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight(nil, {
      { BASE .. "a.lora_embedding_A", "F32", { 1, 2 }, f32 { { 3, 5 } } },
      { BASE .. "a.lora_embedding_B", "F32", { 3, 1 }, f32 { { 1 }, { 0 }, { 2 } } },
    }))
  end)

  it("is of a model in the folder that it names, or in its own", function()
    local whole = folder()
    local own = { ["config.json"] = false, ["model.safetensors"] = false }
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight({ base_model_name_or_path = whole }, nil, own))
    local inside = { ["config.json"] = false, ["model.safetensors"] = false, ["some/config.json"] = '{"model_type": "bert"}',
      ["some/model.safetensors"] = base() }
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight({ base_model_name_or_path = "some" }, nil, inside))
    local apart = { ["config.json"] = false, ["model.safetensors"] = false, ["adapter_config.json"] = false,
      ["adapter_model.safetensors"] = false, ["modules.json"] = '[{"type": "a.Transformer", "path": "0_Transformer"}]',
      ["0_Transformer/adapter_config.json"] = cjson.encode { peft_type = "LORA", r = 1, lora_alpha = 2,
        base_model_name_or_path = whole }, ["0_Transformer/adapter_model.safetensors"] = files.pack { A, B } }
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight(nil, nil, apart))
    assert.equal("'DIR/adapter_config.json' is of an adapter for the model the string 'some/model', which is not here: put its "
      .. "config.json and model.safetensors into the adapter's folder, or let base_model_name_or_path be the path of its folder",
      refused(nil, nil, own))
    local c = checkpoint.open(folder { base_model_name_or_path = whole })
    assert.equal("all keys of config.json: the base model's config.json counts", tostring(c.ignored))
    assert.equal(whole .. "/config.json", c.files.config)
  end)

  it("of another kind is refused, as are keys that would change the result", function()
    assert.equal("'DIR/adapter_config.json': peft_type is the string 'IA3', which is not supported, only LORA; peft's "
      .. "merge_and_unload makes a checkpoint without an adapter", refused { peft_type = "IA3" })
    for key, value in pairs {
      megatron_config = { a = 1 }, trainable_token_indices = { 1 }, layer_replication = { { 0, 1 } }, use_qalora = true,
      alora_invocation_tokens = { 1 }, target_parameters = { "a" }, arrow_config = { a = 1 }, kasa_config = { a = 1 },
      use_bdlora = { a = 1 }, monteclora_config = { a = 1 }, ensure_weight_tying = true, anything = 3,
    } do
      assert.truthy(refused({ [key] = value }):find(("'DIR/adapter_config.json': %s is "):format(key), 1, true), key)
    end
    for _, beginning in ipairs { "pissa", "pissa_niter_16", "olora", "corda", "loftq", "orthogonal", "lora_ga", "mica" } do
      assert.truthy(refused({ init_lora_weights = beginning }):find "which changes the base model's weights, too", beginning)
    end
    assert.same({ { 7, 2, 15 }, { 14, 5, 26 } }, weight {
      init_lora_weights = "gaussian", use_qalora = false, layer_replication = cjson.null, loftq_config = cjson.decode "{}",
      target_modules = { "a" }, qalora_group_size = 16, megatron_core = "megatron.core",
    })
    local c = checkpoint.open(folder { fan_in_fan_out = true })
    assert.equal("fan_in_fan_out of adapter_config.json: linears of these models are never stored transposed",
      tostring(c.ignored))
  end)

  it("is refused if its tensors are missing, misshapen or not finite", function()
    assert.equal("'DIR/adapter_config.json' has no weights: expected adapter_model.safetensors in the same folder",
      refused(nil, nil, { ["adapter_model.safetensors"] = false }))
    assert.truthy(refused(nil, nil, { ["adapter_model.safetensors"] = false, ["adapter_model.bin"] = "x" })
      :find "adapter_model.bin")
    assert.truthy(refused(nil, nil, { ["adapter_model.safetensors"] = "version https://git-lfs.github.com/spec/v1" })
      :find("git lfs pull", 1, true))
    assert.equal("'DIR/adapter_config.json': of the adapter's parts of 'a.weight' one is missing: lora_A or lora_B",
      refused(nil, { A }))
    assert.equal("'DIR/adapter_config.json': lora_B of 'a.weight' is [1][2], expected [2][1]",
      refused(nil, { A, { B[1], "F32", { 1, 2 }, f32 { { 3, 5 } } } }))
    assert.equal("'DIR/adapter_config.json': lora_A of 'a.weight' is not a matrix",
      refused(nil, { { A[1], "F32", { 3 }, f32 { 1, 0, 2 } }, B }))
    assert.equal("'DIR/adapter_config.json': the adapter's tensor 'base_model.model.bert.a.lora_A.weight' has NaN or infinity",
      refused(nil, { { A[1], "F32", { 1, 3 }, f32 { { 1, 0 / 0, 2 } } }, B }))
    local other = { { BASE .. "b.lora_A.weight", "F32", { 1, 3 }, A[4] }, { BASE .. "b.lora_B.weight", "F32", { 2, 1 }, B[4] } }
    assert.equal("'DIR/adapter_config.json': the adapter changes 'b.weight' and no tensor that the base model in 'DIR' has",
      refused(nil, other))
    local c = checkpoint.open(folder(nil, { A, B, unpack(other) }))
    c:tensor "a.weight"
    assert.same({ "bert.a.bias", BASE .. "b.lora_A.weight", BASE .. "b.lora_B.weight" }, c:unused())
  end)

  it("is merged before a model is quantized and saved", function()
    local path = models.path "embedder"
    local width = 32
    local function zeros(n) return ("\0\0\0\0"):rep(n) end
    local changed = models.variant(path, {
      ["adapter_config.json"] = cjson.encode { peft_type = "LORA", r = 1, lora_alpha = 1 },
      ["adapter_model.safetensors"] = files.pack {
        { "base_model.model.encoder.layer.0.attention.self.query.lora_A.weight", "F32", { 1, width }, zeros(width) },
        { "base_model.model.encoder.layer.0.attention.self.query.lora_B.weight", "F32", { width, 1 }, zeros(width) },
      },
    })
    local plain, adapted = perigee.load(path, { kernel = "native" }), perigee.load(changed, { kernel = "native" })
    assert.is_true((plain:embed "how many people"):equals((adapted:embed "how many people"))) -- it adds zero
    plain:release()
    adapted:release()
  end)
end)
