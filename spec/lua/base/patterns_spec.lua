local patterns = require "perigee.base.patterns"

local site = { name = "encoder.layer.0.attention.self.qkv", linears = {
  "encoder.layer.0.attention.self.query", "encoder.layer.0.attention.self.key", "encoder.layer.0.attention.self.value" } }
local dense = { name = "encoder.layer.10.output.dense", linears = { "encoder.layer.10.output.dense" } }

describe("patterns", function()
  it("a pattern is a name of a site or of one of its linears; only * and ? are special", function()
    for _, p in ipairs { site.name, site.linears[2], "*.key", "encoder.layer.?.*", "*" } do
      assert.is_true(patterns.matches(p, site), p)
    end
    for _, p in ipairs { "encoder.layer.0", "key", "encoder_layer_0_attention_self_key", "encoder.layer.10.*", "%w*" } do
      assert.is_false(patterns.matches(p, site), p)
    end
    assert.is_false(patterns.matches("encoder.layer.1.*", dense))
  end)

  it("many stars take no longer than few", function()
    local name = ("encoder.layer."):rep(8)
    assert.is_false(patterns.matcher(("*"):rep(40) .. "x")(name))
    assert.is_false(patterns.matcher(("*?e"):rep(20) .. "*x")(name))
    assert.is_true(patterns.matcher(("*e"):rep(16) .. "*.")(name))
  end)

  it("the closest decides: a site's name, a linear's, a long pattern, a short one", function()
    local map = { ["*"] = 1, ["encoder.layer.0.*"] = 2, [site.linears[3]] = 3, [site.name] = 4, [dense.name] = 5 }
    for _, p in ipairs { site.name, site.linears[3], "encoder.layer.0.*", "*" } do
      assert.are.equal(map[p], patterns.closest(map, site))
      map[p] = nil
    end
    assert.is_nil(patterns.closest(map, site))
    assert.are.equal(1, patterns.closest({ ["*"] = 1, ["*.key"] = 2 }, site, function(value) return value == 1 end))
  end)

  it("find the sites that match, or name what is near", function()
    assert.are.same({ site }, patterns.find("*.value", { site, dense }))
    assert.has_error(function() patterns.find("encoder.layer.10.output.dens", { site, dense }, "skip pattern") end,
      'settings: skip pattern "encoder.layer.10.output.dens" matches no linear (did you mean "encoder.layer.10.output.dense"?)')
    for _, none in ipairs { "", 3, {}, true } do
      assert.has_error(function() patterns.find(none, { site }) end)
    end
  end)
end)
