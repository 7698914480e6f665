local cjson = require "cjson"
local json = require "perigee.base.json"
local jsonl = require "perigee.pipe.jsonl"
local utf8 = require "perigee.base.utf8"

local function refuses(text, why)
  local ok, message = pcall(jsonl.read, text)
  assert.is_false(ok, text)
  assert.matches(why, message, 1, true)
end

describe("jsonl", function()
  it("gives members that are one line, whoever reads it", function()
    local line = jsonl.read '{\r"a"\r:\r[1,\r2,{\r}]\r,"b":"\\r"}'
    assert.are.equal('"a":[1, 2,{ }]', line:member "a")
    assert.are.equal('"b":"\\r"', line:member "b")
    assert.are.equal("[1,\r2,{\r}]", line:raw "a")
  end)

  it("gives members as they stand in the line", function()
    local text = ' { "id" : 12345678901234567890 , "x":-0.5e-10,"a":[1, {"b":[ ]}],"t":"\\u00e9\\n","e":{},"n":null } '
    local line = jsonl.read(text)
    assert.are.same({ "id", "x", "a", "t", "e", "n" }, line.names)
    for name, raw in pairs {
      id = "12345678901234567890", x = "-0.5e-10", a = '[1, {"b":[ ]}]', t = '"\\u00e9\\n"', e = "{}", n = "null",
    } do
      assert.are.equal(raw, line:raw(name))
    end
    assert.is_nil(line:raw "nothing")
    assert.are.equal("é\n", line:text "t")
  end)

  it("takes the last of equal names, also of names that are written otherwise", function()
    local line = jsonl.read '{"a":1,"b":2,"\\u0061":3}'
    assert.are.same({ "a", "b" }, line.names)
    assert.are.equal("3", line:raw "a")
  end)

  it("reads every code point and every escape", function()
    for _, code in ipairs { 0, 0x1F, 0x20, 0x22, 0x5C, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF } do
      local text = ('{"t":"x\\u%04Xy"}'):format(code)
      assert.are.equal(cjson.decode(text).t, jsonl.read(text):text "t")
      local quoted = "{" .. '"t":' .. json.quote(jsonl.read(text):text "t") .. "}"
      assert.are.equal(cjson.decode(text).t, cjson.decode(quoted).t)
    end
    assert.are.equal("😀", jsonl.read('{"t":"\\uD83D\\ude00"}'):text "t")
    assert.are.equal("\"\\/\b\f\n\r\t", jsonl.read([[{"t":"\"\\\/\b\f\n\r\t"}]]):text "t")
  end)

  it("refuses what is no JSON, and says where", function()
    for text, why in pairs {
      [""] = "an object, { at byte 1", ["[]"] = "an object, { at byte 1", ["{"] = "a name in quotes at byte 2",
      ['{"a"}'] = "':' at byte 5", ['{"a":01}'] = "at byte 7", ['{"a":1.}'] = "a digit at byte 8",
      ['{"a":1e}'] = "a digit at byte 8", ['{"a":+1}'] = "a value at byte 6", ['{"a":-}'] = "a digit at byte 7",
      ['{"a":nul}'] = "a value at byte 6", ['{"a":"\t"}'] = "control character in a string at byte 7",
      ['{"a":"\\x"}'] = "an escape at byte 7", ['{"a":"\\u12G4"}'] = "an escape at byte 7",
      ['{"a":1}x'] = "the end of the line at byte 8", ['{"a":1,}'] = "a name in quotes at byte 8",
      ['{"a":"x'] = "the end of a string", ['{"a":[1 2]}'] = "',' or ']' at byte 9", ['{"a":[1,]}'] = "a value at byte 9",
      ['{"a":NaN}'] = "a value at byte 6", ["{'a':1}"] = "a name in quotes at byte 2", ['{"a":0x10}'] = "',' or '}' at byte 7",
      ['{"a":1 "b":2}'] = "',' or '}' at byte 8", ['{"a":' .. ("["):rep(600)] = "more than 512", ["{1:2}"] = "a name in quotes",
      ["\0"] = "an object",
    } do
      refuses(text, why)
    end
  end)

  it("reads nested values up to the limit", function()
    assert.is_truthy(jsonl.read('{"a":' .. ("["):rep(500) .. ("]"):rep(500) .. "}"))
  end)

  it("knows UTF-8 from what is none", function()
    for _, good in ipairs { "", "abc", "é€😀", "\0", "\239\191\191", "\244\143\191\191", "\237\159\191" } do
      assert.is_nil(utf8.malformed(good))
    end
    for bad, at in pairs {
      ["\128"] = 1, ["a\255"] = 2, ["\192\128"] = 1, ["\193\191"] = 1, ["\224\128\128"] = 1, ["\237\160\128"] = 1, ["é\195"] = 3,
      ["\244\144\128\128"] = 1, ["\245\128\128\128"] = 1, ["\240\143\128\128"] = 1, ["\226\130"] = 1, ["x\226\130x"] = 2,
    } do
      assert.are.equal(at, utf8.malformed(bad))
      refuses('{"a":"' .. bad .. '"}', "no valid UTF-8 at byte")
    end
  end)

  it("says what a field is where a text was expected", function()
    local line = jsonl.read '{"n":1,"l":[],"o":{},"t":true,"z":null,"s":"\\ud800","m":["a",1],"w":["a","b\\n"]}'
    for name, why in pairs {
      n = '"n" is a number', o = "an object", t = "true", z = "null", l = "a list",
      x = '"x" is missing', s = "half of a surrogate pair",
    } do
      local ok, message = pcall(line.text, line, name)
      assert.is_false(ok)
      assert.matches(why, message, 1, true)
    end
    assert.are.same({ "a", "b\n" }, line:texts "w")
    assert.are.same({}, line:texts "l")
    assert.matches('"m" is a number', select(2, pcall(line.texts, line, "m")), 1, true)
  end)

  it("writes what other readers read", function()
    local value = { a = {}, b = { 1, 2.5, -0, "x\n\"\\\1" }, c = { d = true, e = 0.1 } }
    assert.are.same(value, cjson.decode(json.line(value)))
    assert.are.equal('{"a":1,"b":null}', json.line { a = 1, b = 1 / 0 })
    assert.are.equal("9007199254740991", json.line(2 ^ 53 - 1))
  end)

  it("blames who gave what is none", function()
    local deep = {}
    deep[1] = deep
    for _, case in ipairs {
      { jsonl.read, nil, "jsonl.read: the line is nil, expected a text" },
      { json.quote, 3, "json.quote: the text is 3, expected a text" },
      { json.line, print, "JSON has no function, only texts" },
      { json.line, { [{}] = 1 }, "a member's name is a table, expected a text" },
      { json.line, deep, "more than 512 tables in one another" },
    } do
      local ok, message = pcall(function() case[1](case[2]) end)
      assert.is_false(ok)
      assert.matches("jsonl_spec.lua:%d+: json", message)
      assert.matches(case[3], message, 1, true)
    end
  end)
end)
