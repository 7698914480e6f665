-- Errors of perigee.checkpoint.layers (sentence-transformers' modules after the pooling), and weights in F64.
-- spec/golden/companions_spec.lua compares the layers' results.
local cjson = require "cjson"
local checkpoint = require "perigee.checkpoint"
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local safetensors = require "perigee.safetensors"

local function zeros(...)
  local n = 1
  for _, size in ipairs { ... } do
    n = n * size
  end
  return ("\0\0\0\0"):rep(n)
end

-- The error of pooling for a folder with this last module, in 2_NAME.
local function refused(name, config, tensors)
  local list = {}
  for i, class in ipairs { "Transformer", "Pooling", name } do
    list[i] = { type = "sentence_transformers.models." .. class, path = i > 1 and ("%d_%s"):format(i - 1, class) or "" }
  end
  local dir = files.folder {
    ["config.json"] = '{"model_type": "bert"}', ["model.safetensors"] = files.pack { { "a", "F32", { 1 }, zeros(1) } },
    ["modules.json"] = cjson.encode(list), ["1_Pooling/config.json"] = "{}", ["2_" .. name .. "/config.json"] = config,
    ["2_" .. name .. "/model.safetensors"] = tensors and files.pack(tensors),
  }
  local ok, message = pcall(function() return checkpoint.open(dir):pooling(8) end)
  assert.is_false(ok)
  return (message:gsub(dir, "DIR"):gsub("'DIR/2_%w+/", "'"))
end

local WEIGHTS = { { "linear.weight", "F32", { 3, 8 }, zeros(3, 8) }, { "linear.bias", "F32", { 3 }, zeros(3) } }

describe("Modules after the pooling", function()
  after_each(files.clean)

  it("are refused if they are not as their config.json says", function()
    local dense = '{"in_features": 8, "out_features": 3%s}'
    for config, message in pairs {
      ["{}"] = "'config.json': out_features is missing, expected an integer from 1 to 2^20",
      ['{"in_features": 7, "out_features": 3}'] =
        "'config.json': in_features is 7, expected 8, the width of the vectors that the modules before it make",
      [dense:format ', "activation_function": "torch.nn.modules.activation.Mish"'] =
        "'config.json': activation_function is the string 'torch.nn.modules.activation.Mish', which is not supported, only "
        .. "torch.nn's GELU, Identity, ReLU, SiLU, Tanh",
      [dense:format ', "activation_function": "custom.Tanh"'] = "'config.json': activation_function is the string 'custom.Tanh'",
      [dense:format ', "module_input_name": "token_embeddings"'] =
        "'config.json': module_input_name is the string 'token_embeddings', which is not supported, only sentence_embedding",
      [dense:format ', "bias": 3'] = "'config.json': bias is 3, expected true or false",
      [dense:format ', "use_residual": true'] = "'model.safetensors' has no tensor 'residual.weight'",
      [dense:format ', "bias": false'] =
        "'model.safetensors': tensor 'linear.bias' belongs to no parameter of the module; it has linear.weight",
    } do
      local came = refused("Dense", config, WEIGHTS)
      assert.truthy(came:find(message, 1, true), came)
    end
    local plain = dense:format ""
    assert.equal("'model.safetensors': tensor 'linear.weight' is [8][3], expected [3][8]",
      refused("Dense", plain, { { "linear.weight", "F32", { 8, 3 }, zeros(3, 8) }, WEIGHTS[2] }))
    assert.equal("'model.safetensors': tensor 'linear.bias' has NaN or infinity",
      refused("Dense", plain, { WEIGHTS[1], { "linear.bias", "F32", { 3 }, ("\0\0\192\127"):rep(3) } }))
    assert.equal("'DIR/2_Dense' has no weights: neither model.safetensors nor model.safetensors.index.json",
      refused("Dense", plain))
    assert.equal("'config.json': dimension is 9, expected 8, the width of the vectors that the modules before it make",
      refused("LayerNorm", '{"dimension": 9}'))
    assert.truthy(refused("Normalize", '{"module_input_name": "x"}'):find "module_input_name is the string 'x'")
  end)

  it("may have keys that sentence-transformers does not know, which are listed", function()
    local dir = files.folder {
      ["config.json"] = '{"model_type": "bert"}', ["model.safetensors"] = files.pack { { "a", "F32", { 1 }, zeros(1) } },
      ["modules.json"] = models.read "spec/golden/tasks/sentence/modules.json":gsub("2_Normalize", "2_Dense")
        :gsub("models.Normalize", "models.Dense"),
      ["1_Pooling/config.json"] = "{}", ["2_Dense/config.json"] = '{"in_features": 8, "out_features": 3, "extra": 1}',
      ["2_Dense/model.safetensors"] = files.pack(WEIGHTS),
    }
    local c = checkpoint.open(dir)
    assert.same({ "dense", "2_Dense", "tanh" }, { c:pooling(8).layers[1].op, c:pooling(8).layers[1].name,
      c:pooling(8).layers[1].activation })
    assert.equal("extra of config.json: sentence-transformers' Dense has no such argument", tostring(c.ignored))
  end)
end)

describe("config_sentence_transformers.json", function()
  after_each(files.clean)

  it("has keys without effect here, which are listed", function()
    local model = perigee.load(models.variant("spec/golden/tasks/sentence", { ["config_sentence_transformers.json"] =
      '{"similarity_fn_name": "dot", "keep_in_fp32_modules": ["0.model.classifier"], "__version__": {}, "requirements": {}}' }))
    local _, ignored = model:unused()
    assert.equal("similarity_fn_name of config_sentence_transformers.json: the caller compares the vectors; perigee.evaluate "
      .. "takes their cosine\nkeep_in_fp32_modules of config_sentence_transformers.json: the setting `skip` says which linears "
      .. "stay in FP32; heads always do", tostring(ignored))
    model = perigee.load(models.variant("spec/golden/tasks/sentence", { ["config_sentence_transformers.json"] =
      '{"similarity_fn_name": "cosine", "keep_in_fp32_modules": null}' }))
    assert.equal("", tostring(select(2, model:unused())))
  end)
end)

describe("truncate_dim", function()
  after_each(files.clean)

  it("is refused if it is no number of elements, and gives way to the option dimensions", function()
    local path = "spec/golden/tasks/sentence"
    local function variant(text)
      return perigee.load(models.variant(path, { ["config_sentence_transformers.json"] = text }), { kernel = "native" })
    end
    for value, said in pairs { ["0"] = "0", ["1.5"] = "1.5", ['"x"'] = "the string 'x'" } do
      assert.error_matches(function() variant('{"truncate_dim": ' .. value .. "}"):embed "a" end,
        "truncate_dim is " .. said .. ", expected an integer of at least 1")
    end
    local model = variant '{"truncate_dim": 4}'
    local short, long = model:embed("the water", { tables = true }), model:embed("the water", { tables = true, dimensions = 6 })
    assert.same({ 4, 6 }, { #short, #long })
    local squares = { 0, 0 }
    for i, list in ipairs { short, long } do
      for _, v in ipairs(list) do
        squares[i] = squares[i] + v * v
      end
    end
    assert.is_true(squares[1] < 0.9) -- sentence-transformers cuts a vector after it is divided by its length
    assert.near(1, squares[2], 1e-6)
    model:release()
  end)
end)

describe("Weights in F64", function()
  after_each(files.clean)

  it("give the answers of the same weights in F32", function()
    local path = models.path "embedder"
    local file, list = safetensors.open(path .. "/model.safetensors"), {}
    for _, name in ipairs(file:names()) do
      local t = file:tensor(name)
      local numbers, count = t:numbers(), 1
      for _, size in ipairs(t.shape) do
        count = count * size
      end
      list[#list + 1] = { name, "F64", t.shape, ffi.string(numbers, 8 * count) }
    end
    list[#list + 1] = { "embeddings.position_ids", "I64", { 1, 2 }, ("\0"):rep(16) }
    local double = perigee.load(models.variant(path, { ["model.safetensors"] = files.pack(list) }), { kernel = "native" })
    local single = perigee.load(path, { kernel = "native" })
    assert.is_true((single:embed "how many people"):equals((double:embed "how many people")))
    assert.same({}, (double:unused()))
    single:release()
    double:release()
  end)

  it("are refused if they are too large for F32", function()
    local huge_number = pgee.doubles(1)
    huge_number[0] = 1e300
    local huge = ffi.string(huge_number, 8)
    local path = models.path "tiny"
    local file, list = safetensors.open(path .. "/model.safetensors"), {}
    for _, name in ipairs(file:names()) do
      local t = file:tensor(name)
      if name == "embeddings.LayerNorm.bias" then
        list[#list + 1] = { name, "F64", t.shape, huge:rep(t.shape[1]) }
      else
        list[#list + 1] = { name, t.dtype, t.shape, ffi.string((t:pointer()), 4 * #t * (t.shape[2] or 1)) }
      end
    end
    assert.error_matches(function() perigee.load(models.variant(path, { ["model.safetensors"] = files.pack(list) })) end,
      "embeddings.LayerNorm.bias has NaN or infinity at [1]", 1, true)
  end)
end)
