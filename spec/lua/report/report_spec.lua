-- Reports: what is drawn has the values of the figures, and the page stands alone and loads in a browser.
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local skip = require "spec.support.skip"
local svg = require "perigee.show.svg"

describe("svg", function()
  it("has marks at round values that cover the range", function()
    assert.are.same({ 0, 10, 20, 30 }, svg.ticks(0, 30, 3))
    local ticks = svg.ticks(16, 22, 3)
    assert.are.same({ 16, 18, 20, 22 }, ticks)
    assert.are.equal(2, #svg.ticks(1, 1, 1))
  end)

  it("draws bars whose lengths are proportional to the values", function()
    local text = svg.bars { title = "<t>", labels = { "a", "b" }, unit = "dB", series = { { name = "s", values = { 10, 40 } } } }
    local widths = {}
    for width in text:gmatch '<rect[^>]- width="([%d.]+)"' do
      widths[#widths + 1] = tonumber(width)
    end
    assert.is_true(math.abs(4 * widths[1] - widths[2]) < 0.05)
    assert.matches("&lt;t&gt;", text, 1, true)
    assert.matches("<title>b, s: 40 dB</title>", text, 1, true)
  end)

  it("draws lines through the values", function()
    local text = svg.lines {
      title = "t", x = { 0, 0.5, 1 }, xlabel = "x", ylabel = "y", series = { { name = "s", y = { 10, 20, 15 } } },
    }
    local x1, y1, x2, y2, x3, y3 = text:match '<polyline[^>]- points="([%d.]+),([%d.]+) ([%d.]+),([%d.]+) ([%d.]+),([%d.]+)"'
    assert.is_true(math.abs(2 * x2 - x1 - x3) < 0.2)
    assert.is_true(math.abs((y1 - y2) - 2 * (y3 - y2)) < 0.3)
  end)
end)

describe("q:report", function()
  local model, stats, q, folder

  setup(function()
    folder = files.folder {}
    model = perigee.load(models.path "embedder")
    stats = model:calibrate(models.texts("recipes/data/calibration.txt", 24), { progress = false })
    q = model:quantize { stats = stats, skip = { "encoder.layer.0.output.dense" } }
  end)

  teardown(function()
    q:release()
    stats:release()
    model:release()
    files.clean()
  end)

  it("has the values of q in the table it returns, in JSON and in CSV", function()
    local r = q:report(folder .. "/r.json")
    local read = cjson.decode(models.read(folder .. "/r.json"))
    local sqnr = q:sqnr "*"
    assert.are.equal(#r.sites, #read.sites)
    for i, site in ipairs(read.sites) do
      assert.are.equal(sqnr[site.name], r.sites[i].sqnr)
      assert.is_true(site.before.largest >= site.before.median)
      if site.precision == "int8" then
        assert.is_true(site.clipped >= 0 and site.clipped < 0.01, site.name .. " clips " .. site.clipped)
      end
    end
    assert.are.equal(11, #read.sweep.alpha)
    assert.are.equal(q:recipe(), read.recipe)
    q:report(folder .. "/r.csv", { sweep = false })
    local text = models.read(folder .. "/r.csv")
    assert.are.equal(#r.sites + 1, select(2, text:gsub("\n", "")))
    assert.matches("\nencoder.layer.0.output.dense,%d+,f32,,,,", text)
  end)

  it("counts what a static scale clips", function()
    local tight = model:quantize { stats = stats, range = "percentile", alpha = false }
    local r, most = tight:report(folder .. "/t.json", { sweep = false }), 0
    for _, site in ipairs(r.sites) do
      most = math.max(most, site.clipped)
    end
    assert.is_true(most > 0 and most < 0.05, most)
    tight:release()
  end)

  it("is a page that stands alone, with a table for each plot", function()
    local r = q:report(folder .. "/r.html")
    local page = models.read(folder .. "/r.html")
    assert.is_nil(page:find("<script", 1, true) or page:find "https?://" or page:find "src=" or page:find ">nan")
    local plots, tables = select(2, page:gsub("<svg ", "")), select(2, page:gsub("<table>", ""))
    assert.is_true(plots == 4 and tables >= plots, plots .. " plots")
    assert.are.equal(plots, select(2, page:gsub("<desc id", "")))
    for _, site in ipairs(r.sites) do
      if site.sqnr then
        assert.matches(("<title>%s, SQNR: %.4g dB</title>"):format(site.name, site.sqnr), page, 1, true)
        assert.matches((">%.2f</td>"):format(site.sqnr), page, 1, true)
      end
    end
  end)

  it("says which names of files it takes, and needs statistics for CSV", function()
    assert.error_matches(function() q:report "r.txt" end, "expected a name that ends in .html, .json or .csv", 1, true)
    assert.error_matches(function() q:report() end, "expected a name that ends in .html, .json or .csv", 1, true)
    local dynamic = model:quantize { activations = "dynamic" }
    assert.error_matches(function() dynamic:report(folder .. "/d.csv") end, "nothing is known of sites", 1, true)
    assert.are.same({}, dynamic:report(folder .. "/d.html").sites)
    dynamic:release()
  end)

  local chromium = os.execute "command -v chromium >/dev/null 2>&1" == 0
  local in_browser = chromium and it or skip "chromium is not installed"
  in_browser("loads in a browser without an error", function()
    q:report(folder .. "/b.html", { sweep = false })
    local command = "timeout 120 chromium --headless --no-sandbox --disable-gpu --enable-logging=stderr --window-size=400,800 "
      .. "--user-data-dir='%s/profile' --dump-dom 'file://%s/b.html' 2>'%s/said'"
    local process = assert(io.popen(command:format(folder, folder, folder)))
    local dom = process:read "*a"
    process:close()
    assert.matches("<h2>How to reproduce</h2>", dom, 1, true)
    assert.are.equal(3, select(2, dom:gsub("<svg ", "")))
    assert.is_nil(models.read(folder .. "/said"):find "CONSOLE")
  end)
end)
