-- The recipes as a user runs them: as programs, from any folder, on a small checkpoint of the repo.
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"

local pipe = assert(io.popen "pwd")
local top = pipe:read "*l"
pipe:close()

-- Runs a recipe from another folder, quickly. Returns what it printed and its exit status.
local function run(recipe, ...)
  local words = {}
  for i, word in ipairs { ... } do
    words[i] = "'" .. word .. "'"
  end
  if recipe:match "static$" or recipe:match "dynamic$" then
    table.insert(words, "--seconds 0")
  end
  local command = ("cd / && luajit '%s/recipes/%s.lua' %s 2>&1; echo \"status $?\""):format(top, recipe, table.concat(words, " "))
  local process = assert(io.popen(command))
  local text = process:read "*a"
  process:close()
  local output, status = text:match "^(.*)status (%d+)\n$"
  return output, tonumber(status)
end

local embedder, pairs_model = top .. "/" .. models.path "embedder", top .. "/" .. models.path "pairs"

describe("recipes", function()
  after_each(files.clean)

  for recipe, mode in pairs { bert_static = "static", bert_dynamic = "dynamic" } do
    it(recipe .. " prints model, settings, quality, speed and memory", function()
      local text, status = run(recipe, "--model", embedder, "--samples", "8", "--explain")
      assert.are.equal(0, status, text)
      for _, word in ipairs {
        embedder, 'activations = "' .. mode .. '"', "8 texts", "SQNR", "cosine", "Spearman", "INT8 is", "MB", "output.dense",
      } do
        assert.matches(word, text, 1, true)
      end
    end)

    it(recipe .. " prints the same as one JSON object", function()
      local text, status = run(recipe, "--model", embedder, "--samples", "8", "--json", "--threads", "1", "--alpha", "0.5",
        "--skip", "encoder.layer.0.*", "--weights", "tensor", "--max-tokens", "20")
      assert.are.equal(0, status, text)
      local result = cjson.decode(text)
      assert.are.same({ 1, "embed", embedder }, { result.threads, result.task, result.model })
      assert.matches('weights = "tensor", alpha = 0.5, skip = { "encoder.layer.0.*" }', result.settings, 1, true)
      assert.is_true(result.distance.sqnr > 15 and result.distance.vectors.mean > 0.95)
      assert.is_true(result.metric.fp32 < 1 and result.metric.n == 450)
      assert.are.equal(3, #result.speed)
      assert.is_true(result.speed[1].fp32.min > 0 and result.memory.int8.weights > 0)
    end)
  end

  it("say which keys of the checkpoint's files have no effect, and refuse them with --strict-files", function()
    local folder = models.variant(embedder, { ["tokenizer_config.json"] = '{"padding_side": "left"}' })
    local said = "1 key of the checkpoint's files has no effect: padding_side (tokenizer_config.json)"
    for recipe, given in pairs {
      bert_dynamic = { "--samples", "8", "--model", folder }, repl = { folder },
      pipe = { "--input", "/dev/null", "--model", folder },
    } do
      local text, status = run(recipe, unpack(given))
      assert.are.equal(0, status, text)
      assert.matches("note: " .. said .. "; model:unused() says why\n", text, 1, true)
      given[#given + 1] = "--strict-files"
      text, status = run(recipe, unpack(given))
      assert.are.equal(1, status)
      assert.matches("strict: " .. said .. "\npadding_side of tokenizer_config.json: sequences are not padded", text, 1, true)
    end
  end)

  for _, recipe in ipairs { "distilbert_static", "distilbert_dynamic", "xlmr_static", "xlmr_dynamic" } do
    it(recipe .. " does so for its architecture", function()
      local folder = top .. "/" .. models.path "distilbert"
      if recipe:match "^xlmr" then -- RoBERTa's weights under the name of its relative, with words for its vocabulary of 97
        local lines = { models.read(models.path "embedder" .. "/vocab.txt"):match(("([^\n]*)\n"):rep(30)) }
        for i = #lines + 1, 97 do
          lines[i] = "[unused" .. i .. "]"
        end
        folder = models.variant(models.path "roberta", {
          ["vocab.txt"] = table.concat(lines, "\n") .. "\n",
          ["config.json"] = models.read(models.path "roberta" .. "/config.json"):gsub('"roberta"', '"xlm-roberta"'),
          ["tokenizer_config.json"] = '{"tokenizer_class": "BertTokenizer"}',
        })
      end
      local text, status = run(recipe, "--model", folder, "--samples", "8", "--json")
      assert.are.equal(0, status, text)
      local result = cjson.decode(text)
      assert.matches('activations = "' .. recipe:match "_(.*)$" .. '"', result.settings, 1, true)
      assert.is_true(result.distance.sqnr > 12)
    end)
  end

  it("rewrite a BERT as a DistilBERT, and say what they cannot", function()
    local out = files.folder {}
    local text, status = run("as_distilbert", embedder, out .. "/new")
    assert.are.equal(0, status, text)
    text, status = run("distilbert_static", "--model", out .. "/new", "--samples", "8", "--json")
    assert.are.equal(0, status, text)
    text, status = run("as_distilbert", top .. "/" .. models.path "roberta", out .. "/other")
    assert.are.equal(1, status)
    assert.matches("expected a BERT whose layer_norm_eps is 1e-12", text, 1, true)
  end)

  it("judge a classifier by accuracy", function()
    local file = files.write "how many\tpeople\tneutral\nno\tno\tentailment\nsee\tthe water\tcontradiction\n"
    local text, status = run("bert_static", "--model", pairs_model, "--samples", "8", "--eval", file, "--json")
    assert.are.equal(0, status, text)
    local result = cjson.decode(text)
    assert.are.same({ "accuracy", 3 }, { result.metric.name, result.metric.n })
    assert.is_number(result.distance.agreement)
  end)

  it("print null as JSON for a figure that is not defined", function()
    local text, status = run("bert_static", "--model", embedder, "--samples", "8", "--eval", files.write "a\tb\t0.5\n", "--json")
    assert.are.equal(0, status, text)
    local metric = cjson.decode(text).metric
    assert.are.same({ cjson.null, cjson.null, 1 }, { metric.fp32, metric.int8, metric.n })
  end)

  it("calibrate on labelled files, too, but never on what they are judged by", function()
    local labelled, copy = files.write "no\t1\nhow many\t0\n", files.write "no\t1\nhow many\t0\n"
    local text, status = run("bert_static", "--model", embedder, "--calibration", labelled, "--json")
    assert.are.equal(0, status, text)
    assert.matches("^2 texts, ", cjson.decode(text).statistics)
    for _, same in ipairs { labelled, copy } do
      text, status = run("bert_static", "--model", embedder, "--calibration", same, "--eval", labelled)
      assert.are.equal(1, status)
      assert.matches("is the file that the model is judged by; calibrate on another one", text, 1, true)
    end
    text, status = run("bert_static", "--model", embedder, "--calibration", top .. "/recipes/data/pairs.tsv")
    assert.are.equal(1, status)
    assert.matches("is the file that the model is judged by", text, 1, true)
  end)

  it("read files that are pipes", function()
    local command = ([[bash -c 'cd / && luajit "%s/recipes/bert_static.lua" --model "%s" --samples 8 --seconds 0 --json \
      --calibration <(printf "one text\nanother\n") --eval <(printf "a\tb\t1\na b\tc\t2\nb\tb\t5\n")' 2>&1]]):format(top,
      embedder)
    local process = assert(io.popen(command))
    local text = process:read "*a"
    process:close()
    assert.are.equal(3, text:match "^{" and cjson.decode(text).metric.n, text)
    assert.matches("2 texts", text, 1, true)
  end)

  it("dynamic needs no calibration", function()
    local text, status = run("bert_dynamic", "--model", embedder, "--no-calibration", "--per", "sequence", "--asymmetric")
    assert.are.equal(0, status, text)
    assert.matches("none: nothing is smoothed", text, 1, true)
    assert.matches('symmetric = false, per = "sequence"', text, 1, true)
  end)

  it("refuse numbers that are none of an option", function()
    for option, range in pairs { alpha = "a number from 0 to 1, or off", seconds = "seconds, a number of at least 0" } do
      local text, status = run("bert_static", "--" .. option .. "=-1.5")
      assert.is_true(status ~= 0, text)
      assert.matches(("Error: expected %s, got -1.5\n"):format(range), text, 1, true)
    end
  end)

  it("end with one line and status 1 when something is wrong", function()
    for _, case in ipairs {
      { { "--model", "/nowhere" }, "/nowhere" },
      { { "--model", embedder, "--calibration", "/nowhere" }, "/nowhere: No such file or directory" },
      { { "--model", embedder, "--max-tokens", "9000" }, "max_tokens is 9000, expected an integer from 2 to 64" },
      { { "--model", embedder, "--skip", "encoder.layr.*" }, 'skip pattern "encoder.layr.*" matches no linear' },
    } do
      local text, status = run("bert_static", unpack(case[1]))
      assert.are.equal(1, status, text)
      assert.matches(case[2], text, 1, true)
      assert.matches("^error: [^\n]*\n$", text)
    end
  end)

  it("fail where what they print is lost", function()
    local command = "cd / && luajit '%s/recipes/bert_static.lua' --model '%s' --samples 8 --seconds 0 --json 2>&1 > /dev/full"
    local process = assert(io.popen(command:format(top, embedder) .. "; echo \"status $?\""))
    local text = process:read "*a"
    process:close()
    assert.matches("^error: what is printed cannot be written: No space left on device\nstatus 1", text)
  end)

  it("refuse options that are none", function()
    for _, words in ipairs { { "--alpha", "x" }, { "--samples", "0" }, { "--weights", "column" }, { "--modle", "x" } } do
      local text, status = run("bert_static", "--model", embedder, unpack(words))
      assert.is_true(status ~= 0, text)
      assert.matches("Error: ", text, 1, true)
    end
  end)

  it("have help", function()
    for _, recipe in ipairs { "bert_static", "bert_dynamic", "alpha", "evaluate" } do
      local text, status = run(recipe, "--help")
      assert.are.equal(0, status)
      assert.matches("Usage: " .. recipe, text, 1, true)
      assert.matches("--calibration", text, 1, true)
    end
  end)

  it("alpha compares alphas after one calibration", function()
    local text, status = run("alpha", "--model", embedder, "--samples", "8", "--activations", "dynamic", "--symmetric", "no")
    assert.are.equal(0, status, text)
    for _, word in ipairs { "dynamic activations, asymmetric", "FP32: Spearman", "alpha off ", "alpha 0.6 ", "alpha 1 " } do
      assert.matches(word, text, 1, true)
    end
  end)

  it("evaluate compares FP32 with INT8 on a labelled set, one text or one JSON object", function()
    local file = files.write 'sentence1,sentence2,gold_label\nhow many,"people, all",neutral\nno,no,entailment\na,b,-\n'
    local words = { "evaluate", pairs_model, "pairs", file, "--as", "csv", "--samples", "8", "--resamples", "50" }
    local text, status = run(unpack(words))
    assert.are.equal(0, status, text)
    for _, said in ipairs {
      "2 items of " .. file, "without 1 that nobody could label", "8 of 620 inputs of ", "INT8 static", "INT8 dynamic",
      "accuracy", "macro F1", "answers changed", "a second", "50 samples",
    } do
      assert.matches(said, text, 1, true)
    end
    words[#words + 1] = "--json"
    text, status = run(unpack(words))
    assert.are.equal(0, status, text)
    local result = cjson.decode(text)
    assert.are.same({ "FP32", "INT8 static", "INT8 dynamic", "pairs", 2 },
      { result.runs[1].name, result.runs[2].name, result.runs[3].name, result.task, result.n })
    assert.matches('activations = "dynamic"', result.runs[3].settings, 1, true)
    assert.are.equal(2, #result.runs[2].scores[1].interval)
  end)

  it("evaluate takes settings and columns, leaves out what it judges by, prints null for what is not defined", function()
    local file = files.write "x\tone text\t1.5\nanother text\ty\t1.5\n"
    local more = files.folder { ["\255.tsv"] = "x\tone text\nthird\tfourth\n" } .. "/\255.tsv"
    local text, status = run("evaluate", embedder, "embed", file, "--text", "1", "--pair", "2", "--label", "3",
      "--mode", "static", "--mode", "fp32", "--calibration", more, "--settings", '{ observer = "mse" }', "--alpha", "off",
      "--json")
    assert.are.equal(0, status, text)
    local result = cjson.decode(text)
    assert.matches('alpha = false.*observer = "mse"', result.runs[1].settings)
    assert.matches("^2 of 2 inputs of [^,]*\239\191\189.tsv, without 2 that are judged by", result.calibration)
    assert.are.same({ "Spearman", cjson.null }, { result.runs[1].scores[1].metric, result.runs[1].scores[1].value })
  end)

  it("evaluate says in one line what is wrong", function()
    local labelled = files.write "no\t1\nhow many\t0\n"
    for _, case in ipairs {
      { { embedder, "qa", labelled }, "qa is judged by questions with contexts and answers" },
      { { embedder, "embed", "/nowhere" }, "cannot open '/nowhere'" },
      { { "/nowhere", "embed", labelled }, "/nowhere" },
      { { embedder, "embed", labelled, "--calibration", labelled }, "all of it is what the model is judged by" },
      { { pairs_model, "ner", files.write "a\tO\n" }, "this checkpoint has a head for" },
      { { "/nowhere", "embed", labelled, "--alpha", "0.5" }, "an artifact is judged as it is" },
    } do
      local text, status = run("evaluate", unpack(case[1]))
      assert.are.equal(1, status, text)
      assert.matches(case[2], text, 1, true)
      assert.matches("^error: [^\n]*\n$", text)
    end
  end)

  it("linear_by_hand quantizes one linear, better smoothed than not", function()
    local text, status = run "linear_by_hand"
    assert.are.equal(0, status, text)
    local plain, smoothed = text:match "without smoothing: SQNR ([%d.]+) dB", text:match "alpha 0.50: SQNR ([%d.]+) dB"
    assert.is_true(tonumber(smoothed) > tonumber(plain) + 6)
  end)
end)

describe("lua/README.md", function()
  it("names fields of perigee that are there", function()
    local perigee, found = require "perigee", 0
    for name in models.read "lua/README.md":gmatch "`perigee%.([%a_]+)" do
      assert.is_true(perigee[name] ~= nil or name == "format" or name == "h", name) -- a key of artifacts, the header
      found = found + 1
    end
    assert.is_true(found > 10)
  end)
end)
