local text_table = require "perigee.show.table"

describe("show.table", function()
  local rows = {
    { "name ", "kind ", "bytes" }, { "encoder.layer.0.attention", "s8", "12" }, { "b", "f32", "3456" },
  }

  it("aligns columns by their headings", function()
    assert.equal("name                       kind   bytes\nencoder.layer.0.attention  s8        12\n"
      .. "b                          f32     3456", text_table(rows))
  end)

  it("leaves out optional columns first, then cuts names at their beginnings", function()
    assert.equal("name                       bytes\nencoder.layer.0.attention     12\nb                           3456",
      text_table(rows, 35, { "kind " }))
    local cut = text_table(rows, 31, { "kind " })
    assert.matches("layer.0.attention     12\n", cut, 1, true)
    assert.is_nil(cut:find("encoder", 1, true))
  end)

  it("never cuts a name to less than 24 columns", function()
    assert.equal(text_table(rows, 31), text_table(rows, 1))
  end)

  it("measures characters, not bytes", function()
    assert.equal("n   x\né   1\n日  2", text_table { { "n ", "x" }, { "é", "1" }, { "日", "2" } })
  end)
end)
