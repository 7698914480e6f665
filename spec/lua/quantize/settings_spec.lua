local registry = require "perigee.quantize.settings.registry"
local settings = require "perigee.quantize.settings"

local function refused(given)
  local ok, message = pcall(settings.new, given)
  assert.is_false(ok)
  return message
end

local site = { name = "encoder.layer.0.attention.self.qkv", linears = {
  "encoder.layer.0.attention.self.query", "encoder.layer.0.attention.self.key", "encoder.layer.0.attention.self.value" } }
local dense = { name = "encoder.layer.10.output.dense", linears = { "encoder.layer.10.output.dense" } }

-- The row of a setting in lua/API.md's table of settings; nil if it has none.
local function documented(name)
  local inside = false
  for line in io.lines "lua/API.md" do
    inside = inside or line:find("generated: settings", 1, true)
    if inside and line:find("^| `" .. name .. "` |") then
      return line
    end
  end
end

describe("the registry of settings", function()
  for _, entry in ipairs(registry.LIST) do
    it("describes " .. entry.name .. " as the documentation does", function()
      local row = assert(documented(entry.name), "no table of lua/API.md has it")
      local head = assert(io.open "lua/perigee/quantize/settings.lua"):read "*a"
      assert.matches("\n%-%-   " .. entry.name .. " +%S", head:match "^(.-)\nlocal ")
      assert.is_true(#entry.text > 10)
      assert.is_true(entry.default ~= nil or entry.default_of.static ~= nil and entry.default_of.dynamic ~= nil)
      for _, default in pairs(entry.default_of or { type(entry.default) ~= "table" and entry.default or nil }) do
        assert.matches(tostring(default), row, 1, true)
      end
      for _, choice in ipairs(entry.choices or {}) do
        assert.matches(tostring(choice), row, 1, true)
      end
    end)
  end

  it("gives keys that change with what a part depends on, and with nothing else", function()
    local static = settings.of(settings.new {}, site)
    local changes = {
      activations = "dynamic", symmetric = true, per = "token", weights = "tensor", alpha = 0.5, range = "mse", pages = "huge",
      attention = "int8", skip = true, floats = "bf16", shift = true,
    }
    for _, part in ipairs { "factors", "quantizer", "weights", "attention", "sqnr" } do
      for name, value in pairs(changes) do
        local other = setmetatable({ [name] = value }, { __index = static })
        local same = registry.key(part, static) == registry.key(part, other)
        assert.equal(not registry.of[name].affects[part], same, part .. " " .. name)
      end
      local dynamic = settings.of(settings.new { activations = "dynamic" }, site)
      local mse = setmetatable({ range = "mse" }, { __index = dynamic })
      assert.equal(registry.key(part, dynamic), registry.key(part, mse))
      assert.equal(registry.key(part, static, static.alpha), registry.key(part, static))
    end
  end)
end)

describe("settings", function()
  it("default to static asymmetric per tensor, dynamic symmetric per token", function()
    local s = settings.new {}
    local chosen = { s.activations, s.symmetric, s.per, s.weights, s.alpha, s.attention }
    assert.are.same({ "static", false, "tensor", "row", settings.ALPHA.static, "auto" }, chosen)
    local d = settings.new { activations = "dynamic" }
    assert.are.same({ "dynamic", true, "token", settings.ALPHA.dynamic }, { d.activations, d.symmetric, d.per, d.alpha })
  end)

  it("say which setting, which value and what is allowed", function()
    assert.matches('activations is "statik", expected "static" or "dynamic" %(did you mean "static"%?%)',
      refused { activations = "statik" })
    assert.matches('there is no "aplha" %(did you mean "alpha"%?%)', refused { aplha = 0.5 })
    assert.matches('per is "token", expected "tensor"', refused { per = "token" })
    assert.matches('per is "tensor", expected "token" or "sequence"', refused { activations = "dynamic", per = "tensor" })
    assert.matches('weights is 3, expected "row" or "tensor"', refused { weights = 3 })
    assert.matches("symmetric is 1, expected true or false", refused { symmetric = 1 })
    assert.matches('symmetric is "yes", expected true or false', refused { symmetric = "yes" })
    assert.matches("expected a table, got number", refused(3))
    assert.matches('attention is "int4", expected "auto" or "int8" or "f32"', refused { attention = "int4" })
    assert.matches('range is "max", expected "minmax" or "percentile" or "mse"', refused { range = "max" })
  end)

  it("shift static activations alone", function()
    assert.is_false(settings.new {}.shift)
    assert.equal("auto", settings.new({ shift = "auto" }).shift)
    assert.matches('shift is "on", expected true or false or "auto"', refused { shift = "on" })
    for _, value in ipairs { true, "auto" } do
      assert.matches("shift is .*, but activations are dynamic, expected false: it is for static activations",
        refused { activations = "dynamic", shift = value })
    end
    local mixed = settings.new { shift = true, sites = { ["encoder.layer.0.*"] = { activations = "dynamic" } } }
    assert.same({ false, true }, { settings.of(mixed, site).shift, settings.of(mixed, dense).shift })
    local wrong = settings.new { sites = { [site.name] = { activations = "dynamic", shift = true } } }
    assert.error_matches(function() settings.of(wrong, site) end, "shift is true at " .. site.name
      .. ", expected false, since its activations are dynamic: it is for static activations", 1, true)
    local own = settings.at(settings.new { shift = "auto" }, { site }, { shift = false })
    assert.same({ false, "auto" }, { settings.of(own, site).shift, settings.of(own, dense).shift })
    local dynamic = settings.with(own, { activations = "dynamic" })
    assert.same({ false, false }, { dynamic.shift, settings.of(dynamic, site).shift })
    assert.is_false(settings.with(dynamic, { activations = "static" }).shift)
  end)

  it("take an alpha from 0 to 1, false, or a table of patterns", function()
    for _, alpha in ipairs { 0, 0.5, 1, false } do
      assert.are.equal(alpha, settings.new({ alpha = alpha }).alpha)
    end
    for _, alpha in ipairs { -0.1, 1.0001, 0 / 0, 1 / 0, "0.5", true } do
      assert.matches("alpha is .*, expected a number from 0 to 1, false", refused { alpha = alpha })
    end
    assert.matches('alpha%["x"%] is 2, expected a number from 0 to 1', refused { alpha = { x = 2 } })
    assert.matches("a key of alpha is 1, expected the name of a linear", refused { alpha = { 0.5 } })
  end)

  it("the longest matching pattern decides alpha, the default stands for the rest", function()
    local s = settings.new { alpha = { ["encoder.layer.0.*"] = 0.3, ["*"] = 0.6, ["*.query"] = 0.2 } }
    assert.are.equal(0.3, settings.of(s, site).alpha)
    assert.are.equal(0.6, settings.of(s, dense).alpha)
    assert.are.equal(settings.ALPHA.static, settings.of(settings.new { alpha = { ["*.query"] = false } }, dense).alpha)
    assert.is_false(settings.of(settings.new { alpha = { ["*.query"] = false } }, site).alpha)
  end)

  it("skip is a list; a name alone is a list of one", function()
    assert.are.same({ "a.*" }, settings.new({ skip = "a.*" }).skip)
    assert.is_true(settings.of(settings.new { skip = { "x", "*.dense" } }, dense).skip)
    assert.matches("skip%[2%] is 7, expected the name", refused { skip = { "a", 7 } })
    assert.matches('skip%["a"%] is true, expected a list of names or patterns, without keys', refused { skip = { a = true } })
    assert.matches("list with holes", refused { skip = { "a", nil, "b" } })
  end)

  it("of a site: the closest pattern decides, setting by setting", function()
    local s = settings.new {
      alpha = { ["*"] = 0.1, [site.linears[2]] = 0.2 }, skip = { "*.dense" },
      sites = {
        ["*"] = { weights = "tensor", symmetric = true }, ["encoder.layer.0.*"] = { symmetric = false, alpha = 0.3 },
        [site.name] = { alpha = 0.4 }, [site.linears[3]] = { alpha = 0.5, range = "mse" },
        ["encoder.layer.??.*"] = { skip = false },
      },
    }
    local own = settings.of(s, site)
    assert.are.same({ 0.4, "tensor", false, "mse", false }, { own.alpha, own.weights, own.symmetric, own.range, own.skip })
    own = settings.of(s, dense)
    assert.are.same({ 0.1, "tensor", true, "minmax", false }, { own.alpha, own.weights, own.symmetric, own.range, own.skip })
    s = settings.new { alpha = { ["*"] = 0.1, [site.linears[2]] = 0.2 }, sites = { ["*"] = { alpha = false } } }
    assert.is_false(settings.of(s, site).alpha)
  end)

  it("of a site have the defaults of its activations", function()
    local s = settings.new { sites = { ["*.dense"] = { activations = "dynamic" } }, symmetric = true }
    local own = settings.of(s, dense)
    assert.are.same({ "dynamic", true, "token", settings.ALPHA.dynamic }, { own.activations, own.symmetric, own.per, own.alpha })
    s = settings.new {
      activations = "dynamic", alpha = 0.9, per = "sequence", sites = { ["*.dense"] = { activations = "static" } },
    }
    own = settings.of(s, dense)
    assert.are.same({ "static", false, "tensor", 0.9 }, { own.activations, own.symmetric, own.per, own.alpha })
    assert.are.equal("sequence", settings.of(s, site).per)
  end)

  it("of the whole model leave sites no value of their own", function()
    local s = settings.new { sites = { a = { alpha = 0.1, symmetric = true }, b = { alpha = 0.2 } } }
    assert.are.same({ a = { symmetric = true } }, settings.with(s, { alpha = 0.5 }).sites)
    assert.are.same({ a = { alpha = 0.1 }, b = { alpha = 0.2 } }, settings.with(s, { activations = "dynamic" }).sites)
    assert.are.same({}, settings.with(s, { sites = {} }).sites)
    assert.are.same({ a = { alpha = 0.1, symmetric = true }, b = { alpha = 0.2 } }, s.sites)
  end)

  it("of sites are checked one by one", function()
    for _, case in ipairs {
      { { sites = 3 }, "sites is 3, expected a table of pattern = { alpha = 0.5, ... }" },
      { { sites = { [1] = { alpha = 0.5 } } }, "a key of sites is 1, expected the name of a linear" },
      { { sites = { a = { alpha = 2 } } }, "alpha is 2, expected a number from 0 to 1" },
      { { sites = { a = { alhpa = 1 } } }, 'a site has no "alhpa" of its own (did you mean "alpha"?); it can have' },
      { { sites = { a = { per = "row" } } }, 'per is "row", expected "tensor" or "token" or "sequence"' },
    } do
      assert.matches(case[2], refused(case[1]), 1, true)
    end
    local s = settings.new { sites = { [dense.name] = { per = "token" } } }
    local ok, message = pcall(settings.check_patterns, s, { site, dense })
    assert.is_false(ok)
    assert.matches('per is "token" at encoder.layer.10.output.dense, expected "tensor", since its activations are', message, 1,
      true)
  end)

  it("have no pattern that matches nothing", function()
    local s = settings.new { skip = { "encoder.layer.10.output.dens" } }
    local ok, message = pcall(settings.check_patterns, s, { site, dense })
    assert.is_false(ok)
    assert.matches('skip pattern "encoder.layer.10.output.dens" matches no linear', message, 1, true)
    assert.matches('(did you mean "encoder.layer.10.output.dense"?)', message, 1, true)
    assert.has_error(function() settings.check_patterns(settings.new { alpha = { nothing = 0.5 } }, { site }) end,
      'settings: alpha pattern "nothing" matches no linear')
  end)

  it("are immutable; `with` makes others", function()
    local s = settings.new { alpha = 0.5 }
    assert.has_error(function() s.alpha = 0.6 end)
    local t = settings.with(s, { activations = "dynamic" })
    assert.are.same({ "static", "dynamic", "token", 0.5 }, { s.activations, t.activations, t.per, t.alpha })
    local u = settings.with(settings.new {}, { activations = "dynamic" })
    assert.are.same({ true, settings.ALPHA.dynamic }, { u.symmetric, u.alpha })
    assert.has_error(function() settings.with(s, { alpha = 7 }) end,
      'settings: alpha is 7, expected a number from 0 to 1, false for no smoothing, or "auto"')
  end)

  it("do not share tables with what they were made from", function()
    local given = { skip = { "a" }, alpha = { b = 0.5 } }
    local s = settings.new(given)
    given.skip[1], given.alpha.b = "z", 1
    assert.are.same({ "a" }, s.skip)
    assert.are.same({ b = 0.5 }, s.alpha)
  end)

  it("print as the table that makes them again", function()
    local s = settings.new {
      activations = "dynamic", alpha = { ["*.dense"] = 0.1, ["x"] = false }, skip = { 'a"b', "c" }, symmetric = false,
      sites = { ["*.x"] = { alpha = 1 / 3, skip = false, per = "sequence" }, [ [[a"\
]] ] = { range = "mse" } },
    }
    local again = settings.new(loadstring("return " .. tostring(s))())
    assert.are.same(s.values, again.values)
    assert.matches("alpha = { %[\"%*%.dense\"%] = 0%.1, %[\"x\"%] = false }", tostring(s))
    assert.are.equal(tostring(settings.new { skip = { "b", "a" } }), tostring(settings.new { skip = { "a", "b" } }))
  end)
end)
