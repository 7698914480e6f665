-- recipes/inspect.lua as a user runs it.
local artifacts = require "spec.support.artifacts"
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local utf8 = require "perigee.base.utf8"

local function inspect(...)
  local process = assert(io.popen("luajit recipes/inspect.lua " .. table.concat({ ... }, " ") .. " 2>&1; echo \"status $?\""))
  local text, status = process:read("*a"):match "^(.*)status (%d+)\n$"
  process:close()
  return text, tonumber(status)
end

describe("recipes/inspect.lua", function()
  local model, path, other

  before_each(function()
    model = perigee.load(models.path "embedder")
    path = artifacts.save(model:quantize { activations = "dynamic" })
    other = artifacts.save(model:quantize { activations = "dynamic", skip = { "encoder.layer.0.output.dense" } })
  end)

  after_each(files.clean)

  it("says what is in a file", function()
    local text, status = inspect(path)
    assert.equal(0, status, text)
    for _, word in ipairs {
      path, "INT8", "format 3, written by " .. perigee.version, "heads: hidden, layers, embed", 'activations = "dynamic"',
      "encoder.layer.0.attention.self.qkv", "packed weights", "per token",
    } do
      assert.matches(word, text, 1, true)
    end
    assert.not_matches("CRC", text)
    assert.not_matches("no tokenizer", text)
    assert.matches("no tokenizer: inputs are ids", (inspect(artifacts.save(perigee.load(models.path "tiny")))), 1, true)
    text = inspect(path, "--tensors")
    assert.matches("encoder.layer.0.output.dense.packed +I8 +%d+ +%d+ +%x%x%x%x%x%x%x%x\n", text)
  end)

  it("says it as JSON", function()
    local text, status = inspect(path, "--json", "--verify")
    assert.equal(0, status, text)
    local info = cjson.decode(text)
    assert.equal(#models.read(path), info.bytes)
    assert.same({ "embed", "every byte", "dynamic" }, { info.model.task, info.verified, info.settings.activations })
    assert.equal("int8", info.linears[1].precision)
    local sum = 0
    for _, bytes in pairs(info.sizes) do
      sum = sum + bytes
    end
    assert.is_true(sum < info.bytes and sum > 0.5 * info.bytes)
  end)

  it("says what two files have different", function()
    local text, status = inspect(path, "--diff", path)
    assert.same({ 0, ("%s and %s are the same\n"):format(path, path) }, { status, text })
    text, status = inspect(path, "--diff", other)
    assert.equal(1, status, text)
    assert.matches("settings.skip.1 +%- +encoder.layer.0.output.dense\n", text)
    assert.matches("encoder.layer.0.output.dense.precision +int8 +f32", text)
    assert.matches("tensor.encoder.layer.0.output.dense.packed +I8 .- +F32 ", text)
    assert.not_matches("attention.output", text)
    text, status = inspect(path, "--diff", other, "--json")
    local object = cjson.decode(text)
    assert.same({ 1, false }, { status, object.same })
    assert.same({ { "int8", "f32" } }, (function()
      local found = {}
      for _, difference in ipairs(object.differences) do
        found[#found + 1] = difference.what:find "precision$" and { difference.first, difference.second } or nil
      end
      return found
    end)())
  end)

  it("finds what only the steps of a plan have different", function()
    local parts = artifacts.parts(path)
    assert.same({ '{"differences":[],"same":true}\n', 0 }, { inspect(path, "--diff", artifacts.write(parts), "--json") })
    for i, step in ipairs(parts.plans.embed.steps) do
      if step[1] == "norm" then
        step[2].eps = 0.5
        local text, status = inspect(path, "--diff", artifacts.write(parts))
        assert.equal(1, status)
        assert.matches(("\nplan.embed.steps.%d.2.eps +1e%%-12 +0.5\n$"):format(i), text)
        return
      end
    end
    error "there is no norm"
  end)

  it("prints JSON of paths that are not UTF-8", function()
    local strange = path .. "\255"
    assert(os.rename(path, strange))
    local text, status = inspect(strange, "--json")
    assert.equal(0, status, text)
    assert.is_nil(utf8.malformed(text))
    assert.equal(path .. "\239\191\189", cjson.decode(text).file)
  end)

  it("fails by a line and status 2", function()
    local text, status = inspect "/nowhere"
    assert.same({ 2, "error: cannot open '/nowhere': No such file or directory\n" }, { status, text })
    local bytes = models.read(path)
    local damaged = files.write(bytes:sub(1, -2) .. "x")
    text, status = inspect(damaged, "--verify")
    assert.equal(2, status)
    assert.matches("^error: '" .. damaged .. "': .-checksum", text)
    assert.equal(2, select(2, inspect(path, "> /dev/full")))
    assert.equal(2, select(2, inspect(path, "--no-such-option")))
    local parts = artifacts.parts(path)
    parts.plans.embed.linears[1].step = 999
    local made_up = artifacts.write(parts)
    text, status = inspect(made_up)
    assert.same({ 2, ("error: '%s': plan.embed.linears[1].step is 999, but there are 21 steps\n"):format(made_up) },
      { status, text })
  end)
end)
