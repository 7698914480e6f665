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
  if recipe:match "static$" or recipe:match "dynamic$" or recipe == "quantize" then
    table.insert(words, "--seconds 0")
  end
  local command = ("cd / && luajit '%s/recipes/%s.lua' %s 2>&1; echo \"status $?\""):format(top, recipe, table.concat(words, " "))
  local process = assert(io.popen(command))
  local text = process:read "*a"
  process:close()
  local output, status = text:match "^(.*)status (%d+)\n$"
  return output, tonumber(status)
end

-- The same with words as a shell has them. environment: assignments.
local function run_words(recipe, words, environment)
  local command = ("cd / && %s luajit '%s/recipes/%s.lua' %s 2>&1; echo \"status $?\""):format(environment or "", top, recipe,
    words)
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
      assert.matches('weights = "tensor", alpha = 0.5, shift = false, skip = { "encoder.layer.0.*" }', result.settings, 1, true)
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
      local how = recipe == "repl" and "model:unused() says why" or "with --strict-files they are an error that says why"
      assert.matches(("note: %s; %s\n"):format(said, how), text, 1, true)
      given[#given + 1] = "--strict-files"
      text, status = run(recipe, unpack(given))
      assert.are.equal(1, status)
      assert.matches("strict: " .. said .. "\npadding_side of tokenizer_config.json: sequences are not padded", text, 1, true)
    end
  end)

  for _, case in ipairs {
    { "distilbert", "static" }, { "distilbert", "dynamic" }, { "xlm-roberta", "static" }, { "xlm-roberta", "dynamic" },
  } do
    local architecture, mode = unpack(case)
    it(("quantize does so for %s, %s"):format(architecture, mode), function()
      local folder = top .. "/" .. models.path "distilbert"
      if architecture == "xlm-roberta" then -- RoBERTa's weights, with words for its vocabulary of 97
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
      local text, status = run("quantize", "--activations", mode, "--model", folder, "--samples", "8", "--json")
      assert.are.equal(0, status, text)
      local result = cjson.decode(text)
      assert.matches('activations = "' .. mode .. '"', result.settings, 1, true)
      assert.is_true(result.distance.sqnr > 12)
    end)
  end

  it("quantize gives the bits of bert_static and bert_dynamic", function()
    local folder = files.folder {}
    for mode, recipe in pairs { static = "bert_static", dynamic = "bert_dynamic" } do
      local one, other = folder .. "/one", folder .. "/other"
      local text, status = run(recipe, embedder, "--samples", "8", "--save", one)
      assert.are.equal(0, status, text)
      text, status = run("quantize", embedder, "--samples", "8", "--activations", mode, "--save", other)
      assert.are.equal(0, status, text)
      assert.is_true(models.read(one) == models.read(other), mode)
    end
  end)

  it("quantize writes a report, and refuses another form of file before the work", function()
    local path = files.folder {} .. "/r.json"
    local text, status = run("quantize", embedder, "--samples", "8", "--report", path)
    assert.are.equal(0, status, text)
    assert.matches("\nreport      " .. path .. "\n", text, 1, true)
    local report = cjson.decode(models.read(path))
    assert.are.same({ "FP32", "INT8", 2 }, { report.comparison.runs[1].name, report.comparison.runs[2].name,
      #report.comparison.runs[2].scores[1].interval })
    assert.are.equal(256, report.distance.n)
    assert.is_true(report.files.int8 > 0 and report.files.fp32 > 0)
    assert.matches("/recipes/quantize.lua " .. embedder .. " --samples 8", report.command, 1, true)
    text, status = run("quantize", "/nowhere", "--report", "r.pdf")
    assert.are.equal(1, status)
    assert.matches("expected a name that ends in .html, .json or .csv", text, 1, true)
  end)

  it("quantize refuses options of the other kind of activations", function()
    for words, said in pairs {
      ["--per token"] = "--per has no effect with --activations static",
      ["--activations no"] = "--activations is the string 'no', expected one of dynamic, static",
      ["--no-calibration"] = "--no-calibration has no effect with --activations static",
      ["--activations dynamic --range mse"] = "--range has no effect with --activations dynamic",
    } do
      local text, status = run_words("quantize", words .. " " .. embedder)
      assert.are.equal(1, status, text)
      assert.matches(said, text, 1, true)
    end
    local text, status = run("quantize", embedder, "--activations", "dynamic", "--no-calibration", "--per", "sequence")
    assert.are.equal(0, status, text)
    assert.matches('per = "sequence"', text, 1, true)
  end)

  it("rewrite a BERT as a DistilBERT, and say what they cannot", function()
    local out = files.folder {}
    local text, status = run("as_distilbert", embedder, out .. "/new")
    assert.are.equal(0, status, text)
    text, status = run("quantize", "--model", out .. "/new", "--samples", "8", "--json")
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

  it("say of an option that is none its name, what was given and what is expected", function()
    for words, said in pairs {
      ["--alpha=-1.5"] = "--alpha is '-1.5', expected a number from 0 to 1, off",
      ["--alpha x"] = "--alpha is 'x', expected a",
      ["--seconds=-1.5"] = "--seconds is -1.5, expected a number from 0 to", ["--seconds x"] = "--seconds is the string 'x', ",
      ["--samples abc"] = "--samples is the string 'abc', expected an integer of at least 1",
      ["--samples 0"] = "--samples is 0, expected an integer of at least 1", ["--samples 1.5"] = "--samples is 1.5, expected an",
      ["--max-tokens 1"] = "--max-tokens is 1, expected an integer of at least 2",
      ["--threads 0"] = "--threads is 0, expected an integer from 1 to 256", ["--threads nan"] = "--threads is nan, expected an",
      ["--weights column"] = "--weights is the string 'column', expected one of row, tensor",
      ["--modle x"] = "unknown option '--modle'. Did you mean '--model'?", ["--alpha"] = "option '--alpha' requires an argument",
      ["--alpha 0.5 --alpha 0.6"] = "--alpha is given 2 times, expected once", ["a b"] = "too many arguments",
      ["x --model y"] = "the model is 'x' and --model is 'y': expected one of them", ["--skip ,"] = "--skip is ','",
      ["--symmetric --asymmetric"] = "--symmetric and --asymmetric exclude each other",
      ["--text 2"] = "--text has no effect without --eval",
      ["--calibration-text 2"] = "--calibration-text has no effect without --calibration",
    } do
      local text, status = run_words("bert_static", words)
      assert.are.equal(1, status, text)
      assert.matches(said, text, 1, true)
      assert.matches("^error: [^\n]*\n$", text)
    end
    for words, said in pairs {
      ["--no-calibration --alpha 0.9"] = "--alpha 0.9 has no effect with --no-calibration: smoothing needs statistics",
      ["--no-calibration --samples 9"] = "--samples has no effect with --no-calibration",
      ["--per text"] = "--per is the string 'text', expected one of sequence, token",
    } do
      local text, status = run_words("bert_dynamic", words)
      assert.are.equal(1, status, text)
      assert.matches(said, text, 1, true)
    end
    for recipe, words in pairs { repl = "x --samples 4", linear_by_hand = "x", alpha = "--activations f32", inspect = "" } do
      local text, status = run_words(recipe, words)
      assert.are.equal(recipe == "inspect" and 2 or 1, status, text)
      assert.matches("^error: [^\n]*\n$", text)
    end
  end)

  it("end with one line and status 1 where there is no library, or another one", function()
    for lib, said in pairs {
      ["/nowhere"] = "/nowhere", [top .. "/README.md"] = "README.md: ", ["libm.so.6"] = "libm.so.6",
    } do
      for _, recipe in ipairs {
        "alpha", "as_distilbert", "bench", "bert_dynamic", "bert_static", "evaluate", "inspect", "linear_by_hand", "pipe",
        "quantize", "register_model", "repl", "tune",
      } do
        local text, status = run_words(recipe, "< /dev/null", "PERIGEE_LIB=" .. lib)
        assert.are.equal(1, status, text)
        assert.matches("^error: [^\n]*\n$", text)
        assert.matches(said, text, 1, true)
      end
    end
  end)

  it("end with one line and status 1 when something is wrong", function()
    for _, case in ipairs {
      { { "--model", "/nowhere" }, "/nowhere" },
      { { "--model", embedder, "--calibration", "/nowhere" }, "cannot open '/nowhere': No such file or directory" },
      { { embedder, "--save", "/nowhere/x", "--samples", "4" }, "/nowhere/x" },
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

  it("have help", function()
    for _, recipe in ipairs { "bert_static", "bert_dynamic", "quantize", "alpha", "tune", "evaluate", "pipe", "repl", "bench" } do
      local text, status = run_words(recipe, "--help")
      assert.are.equal(0, status)
      assert.matches("Usage: " .. recipe, text, 1, true)
      text = text:gsub("%s+", " ")
      if recipe ~= "bench" then
        assert.matches("%-%-samples <samples> How many inputs to calibrate on%. Default: 256 ", text)
      end
      assert.matches("%-%-threads <threads> Threads%. Default: PERIGEE_THREADS, or one for each physical core", text)
    end
  end)

  it("alpha compares alphas after one calibration", function()
    local text, status = run("alpha", "--model", embedder, "--samples", "8", "--activations", "dynamic", "--asymmetric")
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
      "--activations", "static,f32", "--calibration", more, "--calibration-text", "1", "--calibration-pair", "2",
      "--settings", '{ range = "mse" }', "--alpha", "off",
      "--json")
    assert.are.equal(0, status, text)
    local result = cjson.decode(text)
    assert.matches('alpha = false.*range = "mse"', result.runs[1].settings)
    assert.matches("^2 of 2 inputs of [^,]*\239\191\189.tsv, without 2 that are judged by", result.calibration)
    assert.are.same({ "Spearman", cjson.null }, { result.runs[1].scores[1].metric, result.runs[1].scores[1].value })
  end)

  it("evaluate says in one line what is wrong", function()
    local labelled = files.write "no\t1\nhow many\t0\n"
    for _, case in ipairs {
      { { embedder, "qa", labelled }, "qa is judged by questions with contexts and answers" },
      { { embedder, "embed", "/nowhere" }, "cannot open '/nowhere'" },
      { { embedder, "embed", "/dev/zero" }, "cannot read '/dev/zero': it is a character device, expected a file or a pipe" },
      { { embedder, "embed", labelled, "--calibration", files.write "a\nb\192\n" }, ", line 2: byte 2 of the line is 0xC0" },
      { { "/nowhere", "embed", labelled }, "/nowhere" },
      { { embedder, "embed", labelled, "--calibration", labelled }, "all of its inputs are in the set of the evaluation" },
      { { pairs_model, "ner", files.write "a\tO\n" }, "this checkpoint has a head for" },
      { { "/nowhere", "embed", labelled, "--alpha", "0.5" }, "--alpha has no effect on an artifact" },
      { { "/nowhere", "embed", labelled, "--activations", "static" }, "--activations has no effect on an artifact" },
      { { "/nowhere", "embed", labelled, "--calibration", "no" }, "--calibration has no effect on an artifact" },
      { { "/nowhere", "embed", labelled, "--skip", "no" }, "--skip has no effect on an artifact" },
      { { embedder, "embed", labelled, "--activations", "f32", "--samples", "4" }, "--samples has no effect with --activations" },
      { { embedder, "embed", labelled, "--activations", "f32,dynamic", "--range", "mse" }, "--range has no effect without" },
      { { embedder, "embed", labelled, "--activations", "f32", "--seed", "4" }, "--seed has no effect on one model" },
      { { embedder, "embed", labelled, "--language", "de" }, "--language has no effect with the task embed, only with qa" },
      { { embedder, "embed", labelled, "--part", "x" }, "--part has no effect on a file of this form" },
      { { embedder, "embed", labelled, "--settings", "{" }, "--settings is '{', expected a Lua table" },
      { { embedder, "embed", labelled, "--settings", "{ alpha = 1 }", "--alpha", "1" }, "--settings has alpha" },
      { { embedder, "embed", labelled, "--label", "9" }, "--label is 9, expected the number of a column, 1 to 2" },
      { { embedder, "embed", labelled, "--calibration", labelled, "--calibration-text", "z" }, "'z' (--calibration-text), only" },
      { { embedder, "embde", labelled }, "the task is 'embde', expected one of classify, embed" },
      { { embedder, "embed" }, "there is no labelled file" }, { {}, "the task is missing" },
      { { "--model", "x", embedder, "embed", labelled }, "expected one of them" },
      { { pairs_model, "regression", files.write "a\tb\t0.5\n" }, "regression: the model is a classifier with 3 labels" },
      { { files.folder {}, "embed", labelled }, "is not a checkpoint: it has no config.json" },
    } do
      local text, status = run("evaluate", unpack(case[1]))
      assert.are.equal(1, status, text)
      assert.matches(case[2], text, 1, true)
      assert.matches("^error: [^\n]*\n$", text)
    end
  end)

  it("evaluate has columns of its own for calibration, and skips a header where columns are numbers", function()
    local labelled = files.write "one\ttwo\nx\tone text\ny\tanother text\n"
    local calibration = files.write "a\tb\n1\tsome text\n2\tsome other text\n"
    local text, status = run("evaluate", "--model", embedder, "embed", labelled, "--text", "2", "--label", "1", "--header",
      "--calibration", calibration, "--calibration-text", "b", "--activations", "f32", "--activations", "dynamic", "--json")
    assert.are.equal(0, status, text)
    local result = cjson.decode(text)
    assert.are.same({ 2, 2 }, { result.n, #result.runs })
    assert.matches("^2 of 2 inputs of ", result.calibration)
  end)

  it("bert_static takes the columns that its errors name, saves, and says what to run next", function()
    local labelled = files.write "u\tv\tw\tx\n1\ta\tb\tc\n2\td\te\tf\n"
    local text, status = run("bert_static", embedder, "--samples", "4", "--eval", labelled)
    assert.are.equal(1, status)
    assert.matches("has 4 tab-separated fields: 'u', 'v', 'w', 'x'; expected", text, 1, true)
    assert.matches("--text, --pair and --label say which columns they are", text, 1, true)
    local artifact = files.folder {} .. "/m.safetensors"
    text, status = run("bert_static", embedder, "--samples", "4", "--eval", labelled, "--text", "v", "--pair", "w", "--label",
      "u", "--save", artifact)
    assert.are.equal(0, status, text)
    assert.matches("Spearman on " .. labelled .. " (2)", text, 1, true)
    for _, row in ipairs { "packed weights", "embedding tables", "runs", "file" } do
      assert.matches("\n  " .. row .. " +%d+%.%d MB +%d+%.%d MB", text)
    end
    local next_ones = text:match "\nnext:\n(.*)$"
    assert.matches("pipe.lua " .. artifact .. " --lines", next_ones, 1, true)
    assert.matches("repl.lua " .. embedder, next_ones, 1, true)
    assert.matches("evaluate.lua " .. embedder .. " embed " .. labelled, next_ones, 1, true)
    text, status = run("inspect", artifact)
    assert.are.equal(0, status, text)
    text, status = run("bert_static", embedder, "--samples", "4", "--json", "--explain")
    assert.are.equal(0, status, text)
    local result = cjson.decode(text)
    assert.is_true(#result.linears > 0 and result.memory.int8.file > 0 and result.memory.int8.tables > 0)
    text = run("bert_static", embedder, "--samples", "4")
    local words = "--samples 4 --seconds 0 --save model.safetensors"
    assert.matches("/recipes/bert_static.lua " .. embedder .. " " .. words .. "\n", text, 1, true)
  end)

  it("linear_by_hand quantizes one linear, better smoothed than not", function()
    local text, status = run "linear_by_hand"
    assert.are.equal(0, status, text)
    local plain, smoothed = text:match "without smoothing: SQNR ([%d.]+) dB", text:match "alpha 0.50: SQNR ([%d.]+) dB"
    assert.is_true(tonumber(smoothed) > tonumber(plain) + 6)
  end)
end)

describe("lua/API.md", function()
  it("names fields of perigee that are there", function()
    local perigee, found = require "perigee", 0
    for name in models.read "lua/API.md":gmatch "`perigee%.([%a_]+)" do
      assert.is_true(perigee[name] ~= nil or name == "format" or name == "h", name) -- a key of artifacts, the header
      found = found + 1
    end
    assert.is_true(found >= 5)
  end)
end)
