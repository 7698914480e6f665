local nearest = require "perigee.base.nearest"

describe("nearest", function()
  it("is the word with fewest letters added, dropped or replaced", function()
    local words = { "alpha", "activations", "skip" }
    assert.are.equal("alpha", nearest.word("aplha", words))
    assert.are.equal("activations", nearest.word("activation", words))
    assert.is_nil(nearest.word("observer", words))
    assert.are.equal(' (did you mean "skip"?)', nearest.hint("skp", words))
    assert.are.same({ "", "", "" }, { nearest.hint("xyz123", words), nearest.hint(3, words), nearest.hint("a", {}) })
  end)

  it("takes no time for a word of a megabyte", function()
    local word, least = ("a"):rep(2 ^ 20), math.huge
    for _ = 1, 5 do
      local began = os.clock()
      assert.is_nil(nearest.word(word, { ("a"):rep(100) }))
      least = math.min(least, os.clock() - began)
    end
    assert.is_true(least < 0.05)
  end)
end)
