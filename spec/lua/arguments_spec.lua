-- Whatever a public function is given, it does it or says what was expected, and where: errors never come from inside.
local perigee = require "perigee"
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local safetensors = require "perigee.safetensors"
local skip = require "spec.support.skip"
local it = os.getenv "PERIGEE_HARD" and skip "too slow under sanitizers" or it

local ODD = { -- nil is the first
  false, true, 0, -1, 0.5, 0 / 0, 1 / 0, 1e300, 2 ^ 53, "", "nonsense", "a\0b", "\xff\xfe", ("x"):rep(1000), {}, { 1, 2 },
  { {} }, { 1, nil, 3 }, { 1, "a", {} }, { foo = 1 }, function() end, coroutine.create(print), ffi.new "int[4]", 5LL,
}

-- What Lua itself or the FFI says when code goes wrong, and places inside the modules.
local INSIDE = {
  "attempt to ", "bad argument", "cannot convert", "has no member", "metamethod", "stack overflow", "assertion failed",
  "table index is", "^[^ ]*lua/perigee/",
}

local function check(name, i, odd, f, ...)
  local ok, message = pcall(f, ...)
  if ok then
    return
  end
  local what = ("%s, argument %s = %s: %s"):format(name, i, tostring(odd), tostring(message))
  assert(type(message) == "string", what)
  for _, inside in ipairs(INSIDE) do
    assert(not message:find(inside), what)
  end
end

-- Each of the arguments in turn, then each of the options in the last of them, is every odd thing.
local function try(name, f, given, options)
  local count = #given
  for i = 1, count do
    for k = 0, #ODD do
      local arguments = { unpack(given) }
      arguments[i] = ODD[k]
      check(name, i, ODD[k], f, unpack(arguments, 1, count))
    end
  end
  for _, option in ipairs(options or {}) do
    for _, odd in ipairs(ODD) do
      local arguments, copy = { unpack(given) }, {}
      for key, value in pairs(given[count]) do
        copy[key] = value
      end
      copy[option] = odd
      arguments[count] = copy
      check(name, option, odd, f, unpack(arguments, 1, count))
    end
  end
end

describe("odd arguments", function()
  local model, stats, q

  lazy_setup(function()
    model = perigee.load(models.path "embedder")
    stats = model:calibrate({ "a text", "another" }, { progress = false })
    q = model:quantize { stats = stats }
  end)

  lazy_teardown(function()
    q:release()
    stats:release()
    model:release()
  end)

  it("of models are refused by name", function()
    try("load", function(folder, options)
      perigee.load(folder, options):release()
    end, { models.path "embedder", {} }, { "max_tokens", "budget", "kernel" })
    try("lines", perigee.lines, { "file" })
    try("calibrate", function(texts, options)
      model:calibrate(texts, options):release()
    end, { { "a text" }, { progress = false } }, { "samples", "rows" })
    for _, m in ipairs { model, q } do
      try("embed", function(texts, options) return m:embed(texts, options) end, { { "a text" }, {} },
        { "prompt", "tables", "long", "tokens", "stride" })
      for _, method in ipairs { "embed", "hidden", "explain", "memory", m == model and "unused" or "recipe" } do
        try(method, function(self) return m[method](self, "a text") end, { m })
      end
      for _, key in ipairs { "ids", "words", "question" } do
        try("input." .. key, function(value) return m:hidden { [key] = value, context = key == "question" and "a" or nil } end,
          { {} })
      end
    end
  end)

  it("of a quantized model are refused by name", function()
    try("quantize", function(given) model:quantize(given):release() end, { { stats = stats } }, { "stats", unpack(
      perigee.settings.KEYS) })
    try("set", function(pattern, given) return q:set(pattern, given) end, { "*", {} }, perigee.settings.OF_SITE)
    try("set", function(given) return q:set(given) end, { {} }, perigee.settings.KEYS)
    for _, method in ipairs { "undo", "recipe", "diff", "sqnr", "plot", "sweep" } do
      try(method, function(self) return q[method](self, "*") end, { q })
      try(method, function(given) return q[method](q, given) end, { q })
    end
    local sweep = q:sweep { alpha = { 0, 1, 0.5 }, output = false, progress = false }
    try("sweep:plot", function(pattern) return tostring(sweep:plot(pattern)) end, { "*" })
    try("sweep", function(given) return q:sweep(given) end, { { alpha = { 0.5, 1, 0.5 }, progress = false, output = false } },
      { "alpha", "sites" })
  end)

  it("of objects by hand are refused by name", function()
    local tensor, observer, packed, quant = perigee.tensor, perigee.observer, perigee.packed, perigee.quant
    local x, v = tensor.from { { 1, 2, 3, 4 }, { 5, 6, 7, 8 } }, tensor.from { 1, 2, 3, 4 }
    local w, x8 = packed.new(x), quant.quantize(x)
    try("tensor.new", tensor.new, { "F32", { 2, 3 } })
    try("tensor.from", tensor.from, { { 1, 2 }, "F32" })
    try("tensor.set", function(values) return x:copy():set(values) end, { 1 })
    try("tensor[]", function(i, value) x:copy()[i] = value end, { 1, { 1, 2, 3, 4 } })
    try("tensor.rows", function(first, last) return x:rows(first, last) end, { 1, 2 })
    try("observer.new", observer.new, { 4, {} }, { "sample", "name" })
    try("observer.update", function(rows) return observer.new(4):update(rows) end, { x })
    try("quant.range", quant.range, { -1, 1, {} }, { "symmetric" })
    try("quant.absmax", quant.absmax, { { w } })
    try("quant.smooth", quant.smooth, { v, v, 0.5 })
    try("quant.multiplier", quant.multiplier, { 1, v })
    try("quant.quantize", quant.quantize, { x, {} }, { "scale", "zero", "symmetric", "smooth", "per", "batch" })
    try("packed.new", packed.new, { x, {} }, { "per", "pages", "dtype" })
    try("linear", function(...) return perigee.linear(...) end, { x, w, {} },
      { "bias", "activation", "residual", "quantize", "requantize", "kernel" })
    try("plan.seal", function(outputs) return perigee.plan.new():seal(outputs) end, { {} })
    try("plan.linear", function(fields) return perigee.plan.new():linear(fields) end, { {} }, { "x", "w", "zero", "activation" })
    try("plan.workspace", function(capacity) return perigee.plan.new():seal {}:workspace(capacity) end, { {} })
    for name, object in pairs { tensor = x, observer = observer.new(4), packed = w, quantized = x8, plan = perigee.plan.new() } do
      try(name .. ".release", function(self) return self ~= object and object.release(self) end, { object })
    end
  end)

  it("of files and plots are refused by name", function()
    local path = files.write ""
    try("safetensors.open", safetensors.open, { models.path "embedder" .. "/model.safetensors", {} }, { "copy" })
    try("safetensors.write", function(tensors, metadata)
      return safetensors.write(path, tensors, metadata)
    end, { { a = perigee.tensor.from { 1 } }, { key = "text" } })
    files.clean()
    for _, kind in ipairs { "curve", "points", "bars" } do
      try("plot." .. kind, function(given) return tostring(perigee.plot[kind](given)) end, { { y = { 1, 2 } } },
        { "x", "y", "series", "title", "xlabel", "ylabel", "width", "height" })
    end
    try("plot.ranges", function(...) return tostring(perigee.plot.ranges(...)) end, { { 1, 2 }, { 1, 2 }, {} },
      { "title", "width", "height", "names" })
  end)
end)
