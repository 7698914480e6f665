-- perigee.json: JSON files with errors that name them.
local json = require "perigee.base.json"
local utf8 = require "perigee.base.utf8"
local files = require "spec.support.files"

local function refused(read, text)
  local path = files.write(text)
  local ok, message = pcall(read, path)
  assert.is_false(ok)
  local name, why = message:match "^'(.-)' (.*)$"
  assert.equal(path, name)
  return why
end

describe("perigee.json", function()
  after_each(files.clean)

  it("reads an object", function()
    local value = json.object(files.write ' {"a": [1, 2.5, "x"], "b": null, "c": {"d": true}, "é": "\\u00e9"}\n')
    assert.same({ 1, 2.5, "x" }, value.a)
    assert.equal(json.null, value.b)
    assert.is_true(value.c.d)
    assert.equal("é", value["é"])
  end)

  it("reads a list", function()
    assert.same({ 1, 2 }, json.list(files.write "[1, 2]"))
    assert.same({}, json.list(files.write "[]"))
    assert.same({}, json.object(files.write "{}"))
  end)

  it("keeps the last of two equal keys, and numbers as large as they come", function()
    local value = json.object(files.write '{"a": 1, "a": 2, "b": 1000000000000000019884624838656}')
    assert.equal(2, value.a)
    assert.equal(1e30, value.b)
  end)

  it("refuses what is not JSON, naming the file", function()
    local deep = ("["):rep(2000)
    for _, text in ipairs { "", "{", '{"a": }', "{'a': 1}", '{"a": NaN}', '{"a": Infinity}', '{"a": 0x10}', "{} x", deep } do
      assert.truthy(refused(json.object, text):find "^is not valid JSON: ", text)
    end
  end)

  it("says at which byte a text is not JSON", function()
    for text, why in pairs {
      ["[1, 2"] = "expected ',' or ']' at byte 6", ['{"a" 1}'] = "expected ':' at byte 6",
      ["[01]"] = "expected ',' or ']' at byte 3",
      ['["\\ud800"]'] = "expected a string without half of a surrogate pair at byte 2", ["[1e999]"] =
      "expected a number that a double can hold at byte 2", ['"\255"'] = "expected UTF-8 at byte 2", ["[1] 2"] =
      "expected the end of the text at byte 5", ['"a\nb"'] = "expected no control character in a string at byte 3",
      ["\239\187\191{}"] = "expected a value at byte 1", [""] = "expected a value at byte 1",
      [("["):rep(600)] = "more than 512 lists and objects in one another at byte 513",
    } do
      assert.error(function() json.decode(text) end, why)
    end
  end)

  it("decodes every value, and writes it again", function()
    local text = '{"a":[1,-2.5,1e+300,0.1,5e-324],"b":{},"c":"\\"\\\\\\u0001é😀","d":[true,false,null,"x\\u0000y"]}'
    assert.equal(text, json.canonical(json.decode(text)))
    assert.same({ "\u{1F600}/\b\f\n\r\t" }, json.decode '["\\ud83d\\ude00\\/\\b\\f\\n\\r\\t"]')
    assert.equal(json.null, json.decode " null ")
    assert.equal("userdata", type(json.null))
    assert.same({ {}, {} }, json.decode "[[],{}]")
  end)

  it("reads nothing but files of a bounded size", function()
    assert(os.execute "command -v truncate > /dev/null" == 0)
    local path = files.write ""
    assert(os.execute("truncate --size 1073741825 " .. path) == 0)
    assert.error(function() json.object(path) end,
      ("cannot read '%s': it has 1073741825 bytes, expected at most 1073741824"):format(path))
    assert.error(function() json.object "/dev/zero" end, "cannot read '/dev/zero': it is a character device, expected a file")
    assert.same({ nil, "cannot read '/dev/zero': it is a character device, expected a file or a pipe" },
      { json.text("/dev/zero", true) })
  end)

  it("refuses another kind of value", function()
    assert.equal("holds a list, expected an object", refused(json.object, "[1]"))
    assert.equal("holds a list, expected an object", refused(json.object, "[]"))
    assert.equal("holds an object, expected a list", refused(json.list, "{}"))
    assert.equal("holds 3, expected an object", refused(json.object, "3"))
    assert.equal("holds null, expected a list", refused(json.list, "null"))
    assert.equal("holds the string 'x', expected a list", refused(json.list, '"x"'))
  end)

  it("names files that cannot be read", function()
    assert.error(function() json.object "/nowhere/x" end, "cannot open '/nowhere/x': No such file or directory")
    assert.error(function() json.object "/tmp" end, "cannot read '/tmp': it is a directory, expected a file")
    assert.is_false(json.exists "/nowhere/x")
    local path = files.write ""
    assert.is_true(json.exists(path))
    assert.is_false(json.exists(path .. "/x"))
    assert(os.execute(("rm %s; ln -s %s %s"):format(path, path, path)) == 0) -- cannot be opened
    assert.is_true(json.exists(path))
    assert.error_matches(function() json.object(path) end, "cannot open '" .. path, 1, true)
  end)

  it("makes UTF-8 of any bytes", function()
    assert.equal("a\239\191\189\239\191\189é🙂", utf8.repair "a\255\192é🙂")
    assert.equal("", utf8.repair "")
  end)

  it("describes values", function()
    assert.equal("missing", json.describe(nil))
    assert.equal("null", json.describe(json.null))
    assert.equal("a list or an object", json.describe {})
    assert.equal("the string 'x'", json.describe "x")
    assert.equal("false", json.describe(false))
  end)
end)
