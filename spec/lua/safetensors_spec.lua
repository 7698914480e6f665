-- perigee.safetensors: files as objects. spec/engine/data/safetensors_spec.lua tests malformed files.
local safetensors = require "perigee.safetensors"
local files = require "spec.support.files"
local live = require "spec.support.live"

local HEADER = '{"__metadata__":{"format":"pt"},"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},'
  .. '"a":{"dtype":"I8","shape":[2,2],"data_offsets":[2,6]}}'
local BYTES = files.safetensors(HEADER, "\1\2\3\4\5\255")

describe("perigee.safetensors", function()
  after_each(files.clean)

  it("lists and gives tensors and metadata", function()
    local f = safetensors.open(files.write(BYTES))
    assert.same({ "b", "a" }, f:names())
    assert.equal(2, #f)
    assert.same({ { 3, 4 }, { 5, -1 } }, f:tensor("a"):totable())
    assert.same({ 1, 2 }, f:tensor("b"):totable())
    assert.equal("pt", f:metadata "format")
    assert.is_nil(f:metadata "b")
    assert.equal("safetensors file of 2 tensors", tostring(f))
    assert.is_true(safetensors.is(f))
    assert.is_false(safetensors.is {})
  end)

  it("keeps tensors readable when it is closed and its file removed", function()
    local path = files.write(BYTES)
    local f = safetensors.open(path)
    local t = f:tensor "a"
    f:close()
    f:close()
    assert(os.remove(path))
    files.made = {}
    assert.same({ { 3, 4 }, { 5, -1 } }, t:totable())
    assert.equal("safetensors file (closed)", tostring(f))
    assert.error_matches(function() f:names() end, "this safetensors file was released")
    assert.error_matches(function() f:tensor "a" end, "this safetensors file was released")
    assert.error_matches(function() f:metadata "a" end, "this safetensors file was released")
  end)

  it("holds no memory when all is released", function()
    assert.equal(0, (live.during(function()
      local f = safetensors.open(files.write(BYTES))
      local t = f:tensor "a"
      f:close()
      t:release()
    end)))
  end)

  it("blames the caller", function()
    local f = safetensors.open(files.write(BYTES))
    for text, mistake in pairs {
      ["cannot open '/nowhere': No such file or directory"] = function() safetensors.open "/nowhere" end,
      ["path is nil, expected a string without zero bytes"] = function() safetensors.open() end,
      ["path is the string 'a%z', expected a string without zero bytes"] = function() safetensors.open "a\0" end,
      ["has no tensor 'c'"] = function() f:tensor "c" end,
      ["name is 3, expected a string without zero bytes"] = function() f:tensor(3) end,
      ["key is nil, expected a string without zero bytes"] = function() f:metadata() end,
      ["safetensors file is a table, expected a safetensors file"] = function() f.names {} end,
      ["file is a table, expected a safetensors file"] = function() f.close {} end,
    } do
      local ok, message = pcall(mistake)
      assert.is_false(ok)
      assert.truthy(message:find(text) and message:find "safetensors_spec.lua:%d+: ", message)
    end
  end)
end)
