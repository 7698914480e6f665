-- perigee.texts: the one reader of calibration texts, and how calibration takes from its lists.
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

describe("perigee.texts", function()
  after_each(files.clean)

  it("reads plain texts, JSON Lines and labelled files", function()
    for text, expected in pairs {
      ["a\n\nb, c\r\nd"] = { "a", "b, c", "d" },
      ['{"text":"a"}\n{"text":"b","label":"x"}\n'] = { "a", "b" },
      ["a\tx\nb\ty\n"] = { "a", "b" },
      ["sentence1\tsentence2\tgold_label\na\tb\tx\n"] = { { "a", "b" } },
    } do
      assert.are.same(expected, perigee.texts(files.write(text)), text)
    end
    assert.are.same({ "a", "b" }, perigee.texts({ files.write "a\n", files.write "b\n" }))
  end)

  it("makes two texts of a pair, and leaves out what a model is judged by", function()
    local path = files.write "a\tb\t1\nc\td\t2\n"
    assert.are.same({ "a", "b", "c", "d" }, perigee.texts(path, { single = true }))
    local judged = perigee.evaluate.read(files.write "a\tb\t1\n")
    local left = perigee.texts(path, { single = true, without = judged })
    assert.are.same({ "c", "d" }, left)
    assert.are.same({ { path }, { path }, 2 }, { perigee.texts.origin(left).files, perigee.texts.origin(left).paths,
      perigee.texts.origin(left).out })
    assert.is_nil(perigee.texts.origin { "a" })
  end)

  it("refuses what is not UTF-8, with the line, by this reader and by perigee.lines", function()
    local path = files.write "a\nb\192c\n"
    local said = path .. ", line 2: byte 2 of the line is 0xC0, which is not UTF-8"
    assert.error_matches(function() perigee.texts(path) end, said, 1, true)
    local model = perigee.load(models.path "embedder")
    assert.error_matches(function() model:calibrate(perigee.lines(path), { progress = false }) end, said, 1, true)
    model:release()
  end)

  it("says which option is wrong", function()
    local path = files.write "a\n"
    assert.error_matches(function() perigee.texts(path, { single = 1 }) end, "texts: single is 1", 1, true)
    assert.error_matches(function() perigee.texts(path, { without = {} }) end, "expected what evaluate.read returned", 1, true)
    assert.error_matches(function() perigee.texts(path, { labels = 1 }) end, "no option labels", 1, true)
    assert.error_matches(function() perigee.texts(path, { text = "z" }) end, "text has no effect on a file of this form", 1, true)
  end)
end)

describe("calibration", function()
  local model

  setup(function() model = perigee.load(models.path "embedder") end)
  teardown(function() model:release() end)
  after_each(files.clean)

  local function digest(texts, samples)
    local stats = model:calibrate(texts, { samples = samples, progress = false })
    local found = stats:digest().digest
    stats:release()
    return found
  end

  it("takes texts evenly over a list, and the first ones of an iterator", function()
    local all = {}
    for i = 1, 10 do
      all[i] = ("text %d "):format(i):rep(i)
    end
    assert.are.equal(digest({ all[1], all[4], all[7] }, 3), digest(all, 3))
    assert.are.equal(digest(all, 10), digest(all, 99))
    local i = 0
    assert.are.equal(digest({ all[1], all[2], all[3] }, 3), digest(function()
      i = i + 1
      return all[i]
    end, 3))
  end)

  it("names the files and warns of few tokens", function()
    local path = files.write(("how many people\n"):rep(40))
    local stats = model:calibrate(perigee.texts(path), { samples = 8, progress = false })
    assert.matches("^8 texts, %d+ tokens; of the 40 in " .. path:gsub("%p", "%%%0") .. "; %d+ tokens are few: ", tostring(stats))
    assert.matches("from about 2000 tokens on", stats:warning())
    stats:release()
    stats = model:calibrate({ "a b" }, { progress = false })
    assert.matches("^1 texts, %d+ tokens; %d+ tokens are few", tostring(stats))
    stats.tokens = 2000
    assert.is_nil(stats:warning())
    assert.are.equal("1 texts, 2000 tokens", tostring(stats))
    stats:release()
  end)

  it("is done again by the recipe of the model", function()
    local path = files.write "a\tx\tone text\nb\ty\tanother text\nc\tx\tthe third\n"
    local texts = perigee.texts(path, { text = 3 })
    local stats = model:calibrate(texts, { samples = 2, progress = false })
    local q = model:quantize { stats = stats }
    local recipe = q:recipe()
    assert.matches(("perigee.texts({ %q }, { text = 3 })"):format(path), recipe, 1, true)
    local again = assert(loadstring(recipe))()
    assert.is_true(again:embed("a text"):equals(q:embed "a text"))
    texts = perigee.texts(path, { text = 3, without = perigee.evaluate.read(files.write "one text\tx\n") })
    local other = model:quantize { stats = model:calibrate(texts, { progress = false }) }
    assert.matches("give the recipe the 2 texts to calibrate on", other:recipe(), 1, true)
    again:release()
    other:release()
    q:release()
    stats:release()
  end)

  it("of pipe.lua says on standard error that the tokens are few, and of which files", function()
    local calibration = files.write "one text\nanother text\n"
    local command = "echo 'a text' | luajit recipes/pipe.lua '%s' --lines --quiet --calibration '%s' 2>&1 >/dev/null"
    local process = assert(io.popen(command:format(models.path "embedder", calibration)))
    local said = process:read "*a"
    process:close()
    assert.matches("note: 2 texts, 8 tokens; of the 2 in " .. calibration .. "; 8 tokens are few", said, 1, true)
  end)
end)
