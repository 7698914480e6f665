--- Surface: the public functions and methods of the Lua API, and valid arguments for each. arguments_spec.lua calls them with odd
-- arguments.
--
--   local world = surface.world()
--   surface.functions(world)   -- { name = function }: all functions, found in the modules and objects
--   surface.entries(world)     -- { name = { f =, arguments = function() -> list, option names; group = } }: those to call
--   surface.INTERNAL           -- { name = why it is not called }
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local pgee = require "perigee.ffi"

local surface = {}

surface.GROUPS = { "objects", "plans", "tokenizer", "models", "tasks", "settings", "evaluate", "plot", "perigee" }

local TASKS = "spec/golden/tasks/"

--- Makes the objects whose functions are called.
function surface.world()
  local w = { tasks = {} }
  for _, name in ipairs { "nli", "cross", "qa", "ner", "mlm" } do
    w.tasks[name] = perigee.load(TASKS .. name, { kernel = "native" })
  end
  w.model = perigee.load(TASKS .. "sentence", { kernel = "native" })
  w.stats = w.model:calibrate({ "how many people", "all of the water" }, { progress = false })
  w.q = w.model:quantize { stats = w.stats }
  w.file = files.folder {} .. "/model.safetensors"
  w.q:save(w.file)
  w.artifact = perigee.open(w.file)
  w.sweep = w.q:sweep { alpha = { 0, 1, 0.5 }, progress = false }
  w.set = perigee.evaluate.read(files.write "a\tx\nb\ty\nc\tx\n")
  w.tokenizer = w.model:tokenizer()
  function w.close()
    for _, m in pairs(w.tasks) do
      m:release()
    end
    w.artifact:release()
    w.q:release()
    w.stats:release()
    w.model:release()
    files.clean()
  end
  return w
end

---- What there is -----------------------------------------------------------------------------------------------------

local function add(list, prefix, from)
  for key, value in pairs(from) do
    if type(value) == "function" and type(key) == "string" and key:sub(1, 2) ~= "__" then
      list[prefix .. key] = value
    end
  end
end

local MODULES = {
  "settings", "tokenizer", "tensor", "observer", "packed", "quant", "plan", "evaluate", "plot", "lines", "texts", "linear",
}

--- Returns every function of perigee, of its modules and of its objects.
function surface.functions(w)
  local list = {}
  add(list, "perigee.", perigee)
  for _, names in ipairs(getmetatable(perigee).__names()) do
    for name in pairs(names) do
      local value = perigee[name]
      list["perigee." .. name] = type(value) == "function" and value or nil
    end
  end
  for _, name in ipairs(MODULES) do
    add(list, name .. ".", perigee[name])
    local meta = getmetatable(perigee[name])
    list[name .. "()"] = meta and meta.__call
  end
  add(list, "safetensors.", require "perigee.safetensors")
  local x = perigee.tensor.from { { 1, 2 }, { 3, 4 } }
  local file = require("perigee.safetensors").open(w.file)
  local plan = perigee.plan.new()
  for name, object in pairs {
    tensor = x, ["packed weight"] = perigee.packed.new(x), observer = perigee.observer.new(2), plan = plan,
    ["safetensors file"] = file,
  } do
    for _, class in ipairs(pgee.classes) do
      if class.is(object) then
        local index = class.metatable.__index
        for _, names in ipairs(type(index) == "table" and { index } or class.metatable.__names(object)) do
          for key in pairs(names) do
            local value = object[key]
            list[name .. ":" .. key] = type(value) == "function" and value or nil
          end
        end
      end
    end
  end
  local space = plan:seal({}):workspace { tokens = 1, sequences = 1 }
  for _, class in ipairs(pgee.classes) do
    if class.is(space) then
      add(list, "workspace:", class.metatable.__index)
    end
  end
  add(list, "quantized tensor:", getmetatable(perigee.quant.quantize(x)))
  add(list, "tokenizer:", getmetatable(w.tokenizer))
  add(list, "model:", require "perigee.run.encoder")
  add(list, "FP32 model:", getmetatable(w.model))
  add(list, "INT8 model:", getmetatable(w.q))
  add(list, "artifact:", getmetatable(w.artifact))
  add(list, "statistics:", getmetatable(w.stats))
  add(list, "sweep:", getmetatable(w.sweep))
  for name, task in pairs(perigee.tasks.all()) do
    list["tasks." .. name .. ".run"] = task.run
  end
  return list
end

---- What is not tried ---------------------------------------------------------------------------------------------------

surface.INTERNAL = {}
for why, names in pairs {
  ["it is for tasks, with a model and a batch that they made"] = {
    "model:gather", "model:probe", "model:run", "model:runner", "model:release_runners", "model:extend", "FP32 model:graph",
    "FP32 model:head", "FP32 model:lower", "FP32 model:pooling", "FP32 model:prompts", "artifact:graph", "artifact:lower",
    "artifact:pooling", "artifact:prompts", "INT8 model:lower",
  },
  ["it is for passes, with sites of a graph"] = {
    "statistics:site", "statistics:attention_of", "statistics:can_judge", "statistics:new", "statistics:check_needed",
    "statistics:refuse_alpha", "settings.of", "settings.at", "settings.check_patterns",
  },
} do
  for _, name in ipairs(names) do
    surface.INTERNAL[name] = why
  end
end

---- What is tried -----------------------------------------------------------------------------------------------------

-- entry(list, group)(name, arguments, count): count is the number of arguments, because the last ones may be nil.
local function adder(entries, functions, group)
  return function(name, arguments, count)
    entries[name] = { f = functions[name], arguments = arguments, group = group, count = count }
  end
end

local function matrix()
  return perigee.tensor.from { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }
end

local function vector()
  return perigee.tensor.from { 1, 2, 3, 4 }
end

local function objects(try, w)
  local packed, quant, observer = perigee.packed, perigee.quant, perigee.observer
  local weight, x8 = packed.new(matrix()), quant.quantize(matrix())
  local safetensors = require "perigee.safetensors"
  local file = safetensors.open(w.file)
  try("tensor.new", function() return { "F32", { 2, 3 } } end)
  try("tensor.from", function() return { { 1, 2 }, "F32" } end)
  try("tensor.code", function() return { "F32" } end)
  for _, name in ipairs { "tensor.handle", "tensor.optional" } do
    try(name, function() return { matrix(), "x" } end, 1)
  end
  for _, name in ipairs { "tensor", "packed", "observer", "quant", "safetensors" } do
    try(name .. ".is", function() return { matrix() } end)
  end
  try("tensor.wrap", function() return { nil } end, 1)
  for _, name in ipairs { "copy", "f32", "first_nonfinite", "huge", "numbers", "pointer", "totable" } do
    try("tensor:" .. name, function() return { matrix() } end)
  end
  try("tensor:release", function() return { matrix() } end)
  try("tensor:equals", function() return { matrix(), matrix() } end)
  try("tensor:sqnr", function() return { matrix(), matrix() } end)
  try("tensor:rows", function() return { matrix(), 1, 2 } end)
  try("tensor:set", function() return { matrix(), 1 } end)
  try("tensor:put", function() return { matrix(), pgee.doubles(8) } end)
  try("observer.new", function() return { 4, {} }, { "sample", "name" } end)
  try("observer.handle", function() return { observer.new(4), "o" } end, 1)
  try("observer:update", function() return { observer.new(4), matrix() } end)
  try("observer:sample", function() return { observer.new(4) } end)
  try("observer:release", function() return { observer.new(4) } end)
  try("packed.new", function() return { matrix(), {} }, { "per", "pages", "dtype", "smooth", "in_place", "scales" } end)
  try("packed.handle", function() return { weight, "w" } end, 1)
  try("packed.handles", function() return { { matrix() }, "weight" } end, 1)
  try("packed.huge_pages", function() return { 1 } end)
  try("packed.over", function()
    local parts = weight:parts()
    return { { N = weight.N, K = weight.K, bytes = parts.bytes, scales = parts.scales, sums = parts.sums } },
      { "N", "K", "bytes", "scales", "sums" }
  end)
  try("packed weight:multiplier", function() return { weight, 0.5 } end)
  try("packed weight:parts", function() return { weight } end)
  try("packed weight:unpack", function() return { weight } end)
  try("packed weight:release", function() return { packed.new(matrix()) } end)
  try("quant.range", function() return { -1, 1, {} }, { "symmetric" } end)
  try("quant.absmax", function() return { { matrix() } } end)
  try("quant.table", function() return { matrix(), "int8" } end)
  try("quant.addend", function() return { vector(), vector() } end)
  try("quant.shifted_bias", function() return { matrix(), vector() } end)
  try("quant.smooth", function() return { vector(), vector(), 0.5 } end)
  try("quant.multiplier", function() return { 1, vector() } end)
  try("quant.quantize", function() return { matrix(), {} }, { "scale", "zero", "symmetric", "smooth", "per", "batch" } end)
  try("quant.quantizer", function() return { {}, 4 }, nil end)
  try("quant.wrap", function() return { matrix(), 1, 128 } end)
  try("quantized tensor:dequantize", function() return { x8 } end)
  try("quantized tensor:release", function() return { quant.quantize(matrix()) } end)
  try("linear()", function() return { perigee.linear, matrix(), weight, {} },
    { "bias", "activation", "residual", "quantize", "requantize", "kernel" } end)
  try("linear.kernel", function() return { weight, 1, "native" } end)
  try("safetensors.open", function() return { w.file, {} }, { "copy" } end)
  try("safetensors.write", function() return { files.write "", { a = vector() }, { key = "text" } } end)
  for _, name in ipairs { "bytes", "names" } do
    try("safetensors file:" .. name, function() return { file } end)
  end
  try("safetensors file:close", function() return { safetensors.open(w.file) } end)
  try("safetensors file:checksum", function() return { file, file:names()[1] } end)
  try("safetensors file:metadata", function() return { file, "config" } end)
  try("safetensors file:tensor", function() return { file, file:names()[1] } end)
  try("safetensors file:verify", function() return { file, 10 } end)
end

-- Valid arguments of each operator of a plan.
local OPERATORS = {
  attention = { "qkv", "heads", "scale", "qk_scale", "v_scale", "queries", "y", "quantize", "bias" },
  embed = { "word", "position", "type", "position_offset", "y", "skip_padding" },
  gather = { "x", "mode", "y" }, observe = { "x", "observer" }, pool = { "x", "mode", "y" }, unit = { "x", "y" },
  linear = { "x", "w", "bias", "scale", "zero", "row_scale", "activation", "residual", "kernel", "y", "quantize" },
  norm = { "x", "residual", "gamma", "beta", "eps", "y", "quantize" }, quantize = { "x", "quantize" },
}

local function plans(try)
  local plan = perigee.plan
  local function sealed()
    local p = plan.new()
    local x = p:buffer("F32", "tokens", 4)
    p:embed { word = perigee.tensor.from({ { 1, 2, 3, 4 } }, "F32"), y = x }
    return p:seal { x }, x
  end
  local p, x = sealed()
  local space = p:workspace { tokens = 4, sequences = 2 }
  local function batch()
    return plan.batch { { 0, 0 }, { 0 } }
  end
  space:run(batch())
  try("plan.new", function() return {} end)
  try("plan.batch", function() return { { { 0 } }, { { 0 } }, { { 1 } } } end)
  try("plan.packed_batch", function()
    local ints = require("ffi").typeof "int32_t[?]"
    return { 1, ints(2, { 0, 1 }), ints(1), ints(1), 0, nil }
  end, 6)
  try("plan:buffer", function() return { plan.new(), "F32", "tokens", 4 } end)
  for name, fields in pairs(OPERATORS) do
    try("plan:" .. name, function() return { plan.new(), {} }, fields end)
  end
  try("plan:seal", function() return { plan.new(), {} } end)
  try("plan:steps", function() return { p } end)
  try("plan:bytes", function() return { p, { tokens = 1, sequences = 1 } }, { "tokens", "sequences", "longest", "marked" } end)
  try("plan:workspace", function() return { p, { tokens = 1, sequences = 1 } }, { "tokens", "sequences", "longest" } end)
  try("plan:work", function() return { p, batch(), 2 } end)
  try("plan:release", function() return { plan.new() } end)
  try("workspace:bytes", function() return { space } end)
  try("workspace:output", function() return { space, x } end)
  try("workspace:profile", function() return { space, batch() } end)
  try("workspace:first_nonfinite", function() return { space, batch() } end)
  try("workspace:run", function() return { space, batch() } end)
  try("workspace:release", function() return { p:workspace { tokens = 1, sequences = 1 } } end)
end

local function tokenizers(try, w)
  local t = w.tokenizer
  local options = { "max_tokens", "truncate", "special", "offsets" }
  try("tokenizer.load", function() return { TASKS .. "sentence" } end)
  try("tokenizer.from_image", function() return { t:image() } end)
  try("tokenizer:encode", function() return { t, "a text", "another", {} }, options end)
  try("tokenizer:encode_words", function() return { t, { "a", "text" }, {} }, options end)
  try("tokenizer:encode_into", function()
    local ints = require("ffi").typeof "int32_t[?]"
    return { t, ints(64), ints(64), 8, "a", "b", nil }
  end, 7)
  try("tokenizer:decode", function() return { t, { 5, 6 }, {} }, { "special" } end)
  try("tokenizer:id", function() return { t, "the" } end)
  try("tokenizer:piece", function() return { t, 5 } end)
  try("tokenizer:image", function() return { t } end)
  try("tokenizer:special_count", function() return { t, true } end)
  try("tokenizer:release", function() return { perigee.tokenizer.load(TASKS .. "sentence") } end)
end

local LOAD = { "max_tokens", "budget", "kernel", "strict" }

local function all_models(try, w)
  local m, q, a = w.model, w.q, w.artifact
  try("model:hidden", function() return { m, { "a text" } } end)
  try("model:layers", function() return { q, { "a text" } } end)
  try("model:memory", function() return { q } end)
  try("model:tokenizer", function() return { m } end)
  try("model:tokens", function() return { m, "a text", "another" } end)
  try("model:stream", function() return { m, { "a" }, {} }, { "task", "field", "window", "bytes", "ready", "options" } end)
  try("FP32 model:calibrate", function()
    return { m, { "a text" }, { progress = false } }, { "samples", "rows", "budget" }
  end)
  try("FP32 model:quantize", function() return { m, {} }, { "stats", unpack(perigee.settings.KEYS) } end)
  for name, one in pairs { ["FP32 model:"] = m, ["INT8 model:"] = q } do
    try(name .. "explain", function() return { one } end)
    try(name .. "save", function() return { one, files.write "", {} }, { "tokenizer" } end)
    try(name .. "release", function() return { one } end)
  end
  try("FP32 model:tokenizer", function() return { m } end)
  try("FP32 model:unused", function() return { m } end)
  try("INT8 model:set", function() return { q, "*", {} }, perigee.settings.OF_SITE end)
  try("INT8 model:undo", function() return { q } end)
  try("INT8 model:diff", function() return { q, q } end)
  try("INT8 model:plot", function() return { q, "encoder.layer.0.output.dense" } end)
  try("INT8 model:report", function() return { q, w.file .. ".csv", { sweep = false } } end)
  try("INT8 model:recipe", function() return { q } end)
  local select = { cache = false, tokens = { 8 }, time = function() return 1 end, warn = function() end }
  try("INT8 model:select", function() return { q, select }, { "cache", "tokens", "warn", "time" } end)
  try("INT8 model:sqnr", function() return { q, "*" } end)
  try("INT8 model:sweep", function() return { q, { alpha = { 0.5, 1, 0.5 }, progress = false, output = false } },
    { "alpha", "sites", "output" } end)
  for _, name in ipairs { "explain", "memory", "release", "tokenizer" } do
    try("artifact:" .. name, function() return { a } end)
  end
  try("artifact:select", function() return { a, select }, { "cache", "tokens", "warn", "time" } end)
  try("FP32 model:tune", function()
    return { m, { stats = w.stats, data = { "a", "b", "c", "d" }, progress = false, max_drop = 100 } },
      { "stats", "data", "max_drop", "metric", "samples" }
  end)
  try("INT8 model:sensitivity", function() return { q, { tokens = 4, progress = false } }, { "tokens", "without" } end)
  for _, name in ipairs {
    "save", "set", "undo", "sweep", "sensitivity", "tune", "diff", "recipe", "sqnr", "plot", "calibrate", "quantize",
  } do
    try("artifact:" .. name, function() return { a, "*" } end)
  end
  try("statistics:digest", function() return { w.stats } end)
  try("statistics:warning", function() return { w.stats } end)
  try("statistics:release", function() return { m:calibrate({ "a" }, { progress = false }) } end)
  try("sweep:alphas", function() return { w.sweep } end)
  try("sweep:plot", function() return { w.sweep, "*" } end)
  try("sweep:table", function() return { w.sweep } end)
end

local function tasks(try, w)
  local long = { "long", "tokens", "stride" }
  local given = { -- a task that is not here gets an input of its first form, and the model for embed
    embed = { w.model, { "a text" } }, classify = { w.tasks.nli, { "a text" } }, zeroshot = { w.tasks.nli, "a text" },
    rerank = { w.tasks.cross, { query = "a", documents = { "b" } } }, qa = { w.tasks.qa, { question = "a?", context = "b c" } },
    ner = { w.tasks.ner, "a text" }, fill_mask = { w.tasks.mlm, "[MASK] people" },
  }
  local of_form = {
    text = "a text", pair = { { "a", "b" } }, ids = { ids = { 5, 6 } }, question = { question = "a?", context = "b c" },
    words = { words = { "a", "text" } }, query = { query = "a", documents = { "b" } },
  }
  for name, task in pairs(perigee.tasks.all()) do
    given[name] = given[name] or { w.model, of_form[task.forms[1]] }
    local names = {}
    for option in pairs(task.options) do
      names[#names + 1] = option
    end
    assert(#names >= #long)
    local function arguments()
      return { given[name][1], given[name][2], name == "zeroshot" and { labels = { "water" } } or {} }, names
    end
    try("tasks." .. name .. ".run", arguments)
    if name ~= "rerank" then
      try("model:" .. name, arguments)
    end
  end
  try("model:rerank", function() return { w.tasks.cross, "a query", { "a document" }, {} }, { "top_k", unpack(long) } end)
end

local function settings(try, w)
  local s = perigee.settings
  try("settings.new", function() return { {} }, s.KEYS end)
  try("settings.with", function() return { w.q.settings, {} }, s.KEYS end)
  try("settings.is", function() return { w.q.settings } end)
  try("settings.literal", function() return { w.q.settings, "alpha" } end)
end

local function evaluate(try, w)
  for _, name in ipairs { "pearson", "spearman" } do
    try("evaluate." .. name, function() return { { 1, 2 }, { 2, 1 } } end)
  end
  for _, name in ipairs { "accuracy", "matthews" } do
    try("evaluate." .. name, function() return { { "a", "b" }, { "a", "a" } } end)
  end
  try("evaluate.average_precision", function() return { { 0.5, 0.2 }, { 1, 0 } } end)
  try("evaluate.f1", function() return { { "a", "b" }, { "a", "a" }, "a" } end)
  try("evaluate.entities", function() return { { { "O" } }, { { "O" } }, true } end)
  try("evaluate.answer", function() return { { answer = "a" }, { "a" }, "en" } end)
  for _, name in ipairs { "ndcg", "recall", "reciprocal_rank" } do
    try("evaluate." .. name, function() return { { "a", "b" }, { a = 1 }, 10 } end)
  end
  try("evaluate.cosine", function() return { matrix(), 1, matrix(), 2 } end)
  try("evaluate.read", function()
    return { files.write "a\tx\n", {} }, { "text", "pair", "label", "as", "limit", "part", "plain" }
  end)
  try("evaluate.sample", function() return { w.set, 2, nil, false } end, 4)
  try("evaluate.candidates", function() return { w.set, nil, false } end, 3)
  try("evaluate.check", function() return { w.model, w.set, {} } end)
  local options = { "task", "resamples", "seed", "level", "chunk", "prompt" }
  try("evaluate.run", function() return { w.model, w.set, {} }, options end)
  try("evaluate.compare", function() return { { { "a", w.model }, { "b", w.q } }, w.set, { resamples = 2 } }, options end)
  try("evaluate.distance", function() return { w.model, w.q, { "a text" } } end)
end

local function plots(try)
  for _, kind in ipairs { "curve", "points", "bars" } do
    try("plot." .. kind, function() return { { y = { 1, 2 } } },
      { "x", "y", "series", "title", "xlabel", "ylabel", "width", "height" } end)
  end
  try("plot.ranges", function() return { { 1, 2 }, { 1, 2 }, {} }, { "title", "width", "height", "names" } end)
end

local function top(try, w)
  local bert = require "perigee.graph.models.bert"
  try("perigee.threads", function() return { perigee.threads() } end)
  try("perigee.load", function() return { models.path "tiny", {} }, LOAD end)
  try("perigee.open", function() return { w.file, {} }, { "verify", "copy", "kernel", "max_tokens", "budget" } end)
  try("perigee.register_model", function()
    return { "mine", { check = bert.check, encoder = bert.encoder } }, { "check", "encoder", "classify", "prefix" }
  end)
  try("perigee.register_task", function()
    return { "mine", { run = function() end, forms = { "text" } } }, { "run", "forms", "options", "head", "architectures" }
  end)
  try("lines()", function() return { perigee.lines, w.file } end)
  try("lines.path", function() return { perigee.lines(w.file) } end)
  local reading = { "text", "pair", "part", "as", "single", "without", "contents", "called" }
  try("texts()", function() return { perigee.texts, files.write "a text\nanother\n", {} }, reading end)
  try("texts.origin", function() return { {} } end)
end

--- Returns valid arguments for each function.
function surface.entries(w)
  local entries, functions = {}, surface.functions(w)
  for group, of in pairs {
    objects = objects, plans = plans, tokenizer = tokenizers, models = all_models, tasks = tasks, settings = settings,
    evaluate = evaluate, plot = plots, perigee = top,
  } do
    of(adder(entries, functions, group), w)
  end
  return entries
end

return surface
