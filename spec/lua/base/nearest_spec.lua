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
end)
