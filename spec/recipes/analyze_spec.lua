-- recipes/analyze.lua on a small checkpoint: what it prints, the page that it writes, and what it refuses.
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"

local embedder = models.path "embedder"

local function run(words)
  local pipe = assert(io.popen(("luajit recipes/analyze.lua %s 2>&1; echo \"status $?\""):format(words)))
  local text = pipe:read "*a"
  pipe:close()
  local output, status = text:match "^(.*)status (%d+)\n$"
  return output, tonumber(status)
end

describe("recipes/analyze.lua", function()
  after_each(files.clean)

  it("prints hot spots, peaks, rooflines, ceilings and predictions, and writes a page without links", function()
    local page = files.write ""
    local text, status = run(("%s --tokens 20 --seconds 0 --threads 1 --machine icelake-8380 --report '%s'"):format(
      embedder, page))
    assert.are.equal(0, status, text)
    for _, word in ipairs {
      "1 text of 20 tokens, 1 thread", "linear blocks", "INT8 static", "INT8 dynamic", "FP32", "measured", "described",
      "ops/byte", "Roofline", "Amdahl", "of it", "Predicted on Intel Xeon Platinum 8380", "texts a second",
    } do
      assert.matches(word, text, 1, true)
    end
    local file = assert(io.open(page))
    local html = file:read "*a"
    file:close()
    local plots = select(2, html:gsub("<svg ", ""))
    assert.are.equal(3, plots)
    assert.are.equal(plots, select(2, html:gsub("</svg>", "")))
    assert.is_nil(html:find '"[^"]*%f[%a]nan' or html:find '"[^"]*%f[%a]inf%f[%A]' or html:find("<script", 1, true))
    assert.is_nil((html:gsub("http://www.w3.org/2000/svg", "")):find "https?://")
    assert.matches("prefers-color-scheme: dark", html, 1, true)
  end)

  it("prints all of it as JSON, whose parts are consistent", function()
    local text, status = run(embedder .. " --tokens 20 --batch 2 --seconds 0 --threads 1 --json --check")
    assert.are.equal(0, status, text)
    local r = cjson.decode(text)
    assert.are.same({ embedder, 2, 20, 40, 1 }, { r.model, r.batch, r.tokens, r.rows, r.here.cores })
    for _, mode in ipairs { "f32", "static", "dynamic" } do
      local shares = r.modes[mode].shares
      assert.is_true(math.abs(shares.linear + shares.attention + shares.rest - 1) < 1e-9)
    end
    for _, c in pairs(r.ceilings) do
      assert.is_true(c.linears <= c.attention and c.reached > 0)
    end
    assert.is_true(#r.bounds > 0 and #r.isas > 0 and #r.checks == #r.isas - 1)
    assert.is_nil(r.there)
  end)

  it("refuses what it cannot do", function()
    for words, expected in pairs {
      [""] = "expected the folder of a checkpoint or --random with a shape, and not both",
      [embedder .. " --machine sapphire"] = "the machine is the string 'sapphire', expected this, icelake-8380",
      [embedder .. " --clock turbo"] = "--clock has no effect without --machine",
      [embedder .. " --tokens 100000"] = "--tokens is 100000, expected at most",
      [embedder .. " --seconds 0 --report /none/such.html"] = "--report is '/none/such.html', which cannot be written",
    } do
      local text, status = run(words)
      assert.are.equal(1, status, text)
      assert.matches(expected, text, 1, true)
    end
  end)
end)
