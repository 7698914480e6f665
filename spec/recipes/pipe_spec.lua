-- recipes/pipe.lua as a user runs it: a program among programs. The specs run scripts of bash, in which $PIPE is the recipe
-- with a small checkpoint, and $DIR is a folder for the spec's files.
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"

local dir, top
local kills = tonumber(os.getenv "PERIGEE_KILLS" or 4)
local limit = 200 + 4 * kills -- seconds

-- Runs a script in the spec's folder. Returns what it wrote, both streams, and its status.
local function bash(script)
  return files.bash(([[
    export DIR='%s'; cd "$DIR"
    export PERIGEE_THREADS=1
    PIPE="luajit %s/recipes/pipe.lua %s/%s"
    EMBED="$PIPE --task embed --vectors base64"
    %s]]):format(dir, top, top, models.path "embedder", script), limit)
end

local function put(name, text)
  files.put(dir .. "/" .. name, text)
end

local function get(name)
  local file = io.open(dir .. "/" .. name, "rb")
  local text = file and file:read "*a"
  return file and file:close() and text
end

local function lines_of(text)
  local list = {}
  for line in text:gmatch "([^\n]*)\n" do
    list[#list + 1] = line
  end
  return list
end

-- Texts as JSON lines with an id each.
local function texts(count, words)
  local list = {}
  for i = 1, count do
    list[i] = ('{"id":%d,"text":"text %d%s"}\n'):format(i, i, (" some words"):rep(words or i % 7))
  end
  return table.concat(list)
end

describe("pipe", function()
  if os.getenv "PERIGEE_HARD" then
    return pending "many processes, in which the library does what it does in other specs"
  end
  local q = perigee.load(models.path "embedder"):quantize { activations = "dynamic" }

  before_each(function()
    dir, top = files.folder {}, files.top()
  end)
  after_each(files.clean)

  it("answers each line with a line, in order, and keeps fields as they were", function()
    local raws = { "12345678901234567890", "0.1000", "1e400", '{"a": [1,  2]}', '"\\u00e9"', "-0", "null" }
    for i, raw in ipairs(raws) do
      raws[i] = ('{"text":"text %d","id":%s,"other":"x"}\n'):format(i, raw)
    end
    put("in", table.concat(raws))
    local text, status = bash "$EMBED --keep id < in"
    assert.are.equal(0, status, text)
    local list = lines_of(text)
    assert.are.equal(#raws, #list)
    for i, line in ipairs(list) do
      local raw = raws[i]:match '"id":(.*),"other"'
      assert.are.equal(raw, line:match '^{"id":(.*),"result":"[%w+/]+=*"}$')
    end
  end)

  it("keeps all fields but those that it writes, and writes the answer where it is told", function()
    put("in", '{"result":1,"text":"a","line":7,"v":[]}\n{"error":2,"text":3}\n')
    local list = lines_of((bash "$EMBED --keep all --as v < in"))
    assert.matches('^{"result":1,"text":"a","v":"[^"]*"}$', list[1])
    assert.are.equal('{"text":3,"line":2,"error":"field \\"text\\" is a number, expected a string"}', list[2])
    put("in", '{"\\ud800":1,"\\u00e9" : 2, "text":"a"}\n')
    assert.matches('^{"\\ud800":1,"\\u00e9":2,"text":"a","result":"[^"]*"}\n$', (bash "$EMBED --keep all < in"))
    assert.matches('^{"text":"a","\\u00e9":2,"result":"[^"]*"}\n$', (bash "$EMBED --keep text,é,text < in"))
  end)

  it("writes vectors as lists, base64 and .npy: the bits of embed", function()
    put("in", texts(30))
    local given = {}
    for line in get("in"):gmatch "[^\n]+" do
      given[#given + 1] = cjson.decode(line).text
    end
    local want = q:embed(given)
    local text, status = bash "$PIPE --task embed < in"
    assert.are.equal(0, status, text)
    for i, line in ipairs(lines_of(text)) do
      for k, v in ipairs(cjson.decode(line).result) do
        assert.are.equal(want[i][k], tonumber(ffi.new("float[1]", v)[0]))
      end
    end
    text, status = bash [[
      $PIPE --vectors npy --input in --output v.npy
      $EMBED < in | sed 's/.*"result":"//; s/".*//' | while read -r vector; do echo $vector | base64 -d; done > bytes
      cmp bytes <(tail -c +129 v.npy)]]
    assert.are.same({ "", 0 }, { text, status })
    local header = "\147NUMPY\1\0v\0{'descr': '<f4', 'fortran_order': False, 'shape': (30, 32), }"
    assert.are.equal(header .. (" "):rep(127 - #header) .. "\n", get("v.npy"):sub(1, 128))
    assert.are.equal(ffi.string(want:pointer(), 4 * 30 * 32), get("v.npy"):sub(129))
    assert.is_nil(get "v.npy.part")

    put("in", '{"text":"a"}\n{}\n')
    text = bash "$PIPE --vectors npy --input in --output v.npy; tail -c 128 v.npy | od -v -An -tf4 | tr -s ' \\n' '  '"
    assert.matches('^pipe: line 2: field "text" is missing\npipe: 1 of 2 lines have no answer; the first: line 2', text)
    assert.matches((" nan"):rep(32) .. " $", text)
  end)

  it("takes lines that are texts", function()
    put("in", "\239\187\191one text\r\n\nanother {\"x\nlast")
    local text, status = bash "$EMBED --lines < in"
    assert.are.equal(0, status, text)
    local want = {}
    for i, one in ipairs { "one text", "", 'another {"x', "last" } do
      want[i] = require("perigee.pipe.vectors").base64(q:embed(one))
    end
    for i, line in ipairs(lines_of(text)) do
      assert.are.equal(want[i], cjson.decode(line).result)
    end
    assert.are.equal(4, #lines_of(text))
  end)

  it("gives a line that cannot be answered an error with its number, and goes on", function()
    put("in", table.concat({
      '{"text":"good"}', "", '{"text":"x"', '{"text":"\255"}', '{"id":6}', '{"text":["a"]}',
      '{"text":"' .. ("x"):rep(300) .. '"}', '{"text":"good"}\0', '{"text":"good"}',
    }, "\n"))
    local text, status = bash "$EMBED --max-bytes 200 --keep id < in"
    assert.are.equal(0, status, text)
    local list, errors = lines_of(text), {}
    for i, line in ipairs(list) do
      local record = line:match "^{" and cjson.decode(line) or {}
      errors[i] = record.error and { record.line, record.error } or false
    end
    assert.are.same({
      false,
      { 2, "no valid JSON: expected an object, { at byte 1" }, { 3, "no valid JSON: expected ',' or '}' at byte 12" },
      { 4, "no valid UTF-8 at byte 10" }, { 5, 'field "text" is missing' }, { 6, 'field "text" is a list, expected a string' },
      { 7, "the line has 311 bytes, at most 200 are taken" }, { 8, "no valid JSON: expected the end of the line at byte 16" },
      false,
    }, { unpack(errors, 1, 9) })
    assert.are.equal(cjson.decode(list[1]).result, cjson.decode(list[9]).result)
    assert.matches("pipe: 7 of 9 lines have no answer; the first: line 2: no valid JSON", list[10], 1, true)
    assert.matches('"id":6,"line":5', list[5], 1, true)
  end)

  it("stops at the first such line if told so, after the answers before it", function()
    put("in", texts(10) .. "bad\n" .. texts(10))
    local text, status = bash "$EMBED --max-errors 0 < in 2> err; s=$?; cat err >&2; exit $s"
    assert.are.equal(1, status)
    assert.matches("error: 1 of 11 lines have no answer, more than --max-errors 0 allows; the first: line 11", text, 1, true)
    assert.are.equal(12, #lines_of(text))
  end)

  it("says what was cut off, or refuses it", function()
    put("in", '{"text":"' .. ("word "):rep(200) .. '"}\n{"text":"a"}\n')
    local list = lines_of((bash "$EMBED < in; $EMBED --long error < in 2> /dev/null"))
    assert.matches('"truncated":%d+}$', list[1])
    assert.is_nil(list[2]:find "truncated")
    assert.matches('"line":1,"error":"it has %d+ tokens, at most 48 are taken', list[3])
    assert.are.equal(list[2], list[4])
    put("in", '{"text":"' .. ("word "):rep(200) .. 'people"}\n')
    list = lines_of((bash "$EMBED < in; $EMBED --truncation-side right < in; $EMBED --truncation-side left < in"))
    assert.are.equal(list[1], list[2])
    assert.are_not.equal(list[1], list[3])
    assert.are.equal(list[1]:match '"truncated":(%d+)', list[3]:match '"truncated":(%d+)')
  end)

  it("reads pairs and the fields of tasks", function()
    local model = perigee.load(models.path "pairs"):quantize { activations = "dynamic" }
    put("in.tsv", "a text\tits pair\nno pair\n")
    put("in", '{"a":"a text","b":"its pair"}\n')
    local classify = ("PIPE=\"luajit %s/recipes/pipe.lua --model %s\"\n"):format(top, top .. "/" .. models.path "pairs")
    local list = lines_of((bash(classify .. [[
      $PIPE --scores --text a --pair b < in
      $PIPE --lines --pairs < in.tsv 2> /dev/null]])))
    local want = model:classify { { "a text", "its pair" } }[1]
    local got = cjson.decode(list[1]).result
    assert.are.equal(want.label, got.label)
    for label, score in pairs(want.scores) do
      assert.is_true(math.abs(score - got.scores[label]) < 1e-8)
    end
    assert.are.same({ label = want.label, score = got.score }, cjson.decode(list[2]).result)
    assert.matches("expected two texts with a tab between them", list[3], 1, true)
  end)

  it("answers from an artifact as from the model that was saved", function()
    put("in", texts(20))
    q:save(dir .. "/model")
    local text, status = bash(([[
      $EMBED < in > want
      luajit %s/recipes/pipe.lua --model model --vectors base64 < in | cmp - want]]):format(top))
    assert.are.same({ "", 0 }, { text, status })
  end)

  it("does every task, by the fields that it reads", function()
    for _, case in ipairs {
      { "qa", "qa", '"question":"Who?","context":"She did it, he says."',
        { question = "Who?", context = "She did it, he says." } },
      { "ner", "ner", '"text":"one two three"', "one two three" },
      { "ner", "ner", '"text":["one","two"]', { words = { "one", "two" } } },
      { "cross", "rerank", '"query":"a","documents":["b","c d","e"]', { query = "a", documents = { "b", "c d", "e" } },
        "--top-k 2", { top_k = 2 } },
      { "nli", "zeroshot", '"text":"a text"', "a text", "--labels red,blue", { labels = { "red", "blue" } } },
      { "nli", "zeroshot", '"text":"a text"', "a text", "--labels ' red, dark blue ,'", { labels = { "red", "dark blue" } } },
      { "nli", "zeroshot", '"text":"a text"', "a text", "--labels 'red, blue' --labels green --top-k 1 --multi",
        { labels = { "red, blue", "green" }, top_k = 1, multi = true } },
      { "nli", "classify", '"text":"a text"', "a text", "--top-k 2 --apply sigmoid", { top_k = 2, apply = "sigmoid" } },
      { "nli", "classify", '"text":"a text"', "a text", "--threshold 0.3", { threshold = 0.3 } },
      { "ner", "ner", '"text":"one Ötter 🙂 two"', "one Ötter 🙂 two", "--ignore-labels PER,LOC --threshold 0.1 --aggregation max",
        { ignore_labels = { "PER", "LOC" }, threshold = 0.1, aggregation = "max" } },
      { "qa", "qa", '"question":"Who?","context":"Ö 🙂 it, he says."', { question = "Who?", context = "Ö 🙂 it, he says." },
        "--top-k 3 --no-answer --whole-words --by logits", { top_k = 3, no_answer = true, whole_words = true, by = "logits" } },
      { "mlm", "fill_mask", '"text":"a [MASK] c"', "a [MASK] c", "--top-k 3", { top_k = 3 } },
    } do
      local name, task, fields, input, words, options = unpack(case)
      local folder = "spec/golden/tasks/" .. name
      put("in", "{" .. fields .. "}\n")
      local text, status = bash(("luajit %s/recipes/pipe.lua --model %s/%s --task %s %s < in"):format(top, top, folder, task,
        words or ""))
      assert.are.equal(0, status, text)
      local model = perigee.load(folder):quantize { activations = "dynamic" }
      local want = perigee.tasks[task].run(model, { input }, options)[1]
      want.logits, want.value = nil, nil
      assert.are.same(cjson.decode(require("perigee.base.json").line(want)), cjson.decode(text).result, text)
    end
  end)

  it("answers a line that comes alone at once", function()
    local text, status = bash [[
      coproc P { $EMBED; }
      for i in 1 2 3; do
        echo "{\"text\":\"line $i\"}" >&${P[1]}
        read -t 100 -u ${P[0]} line || { echo "no answer to line $i"; exit 1; }
      done
      printf '{"text":"half of' >&${P[1]}
      sleep 0.1
      printf ' a line"}\n{"text":' >&${P[1]}
      read -t 100 -u ${P[0]} line || { echo "the rest of a line is waited for"; exit 1; }
      echo "$line"
      exec {P[1]}>&-
      wait $P_PID]]
    assert.are.equal(0, status, text)
    assert.are.equal(require("perigee.pipe.vectors").base64(q:embed "half of a line"), cjson.decode(text:match "[^\n]*").result)
    put("in", texts(1))
    text = bash [[
      mkfifo endless
      (cat in; exec tr '\0' x < /dev/zero) > endless 2> /dev/null & writer=$!
      $EMBED < endless 2> /dev/null | { head -n 1; kill $writer; }]]
    assert.matches('^{"result":"[^\n]*\n$', text) -- behind it comes a line that does not end
  end)

  it("ends like other filters when nobody reads", function()
    local text = bash [[yes '{"text":"a"}' | $EMBED | head -n 2 > /dev/null; echo "${PIPESTATUS[*]}"
      (trap '' PIPE; yes '{"text":"a"}' 2> /dev/null | $EMBED | head -n 2 > /dev/null; echo "${PIPESTATUS[1]}")]]
    assert.are.equal("141 141 0\n141\n", text)
  end)

  it("fails where what it writes is lost", function()
    put("in", texts(10))
    local text, status = bash "$EMBED < in > /dev/full"
    assert.are.same({ "error: cannot write the output: No space left on device\n", 1 }, { text, status })
    text, status = bash "$EMBED --input in --output nowhere/out"
    assert.are.same({ "error: cannot write 'nowhere/out.part': No such file or directory\n", 1 }, { text, status })
    text, status = bash "(ulimit -f 1; trap '' XFSZ; $EMBED --input in --output out)"
    assert.are.same({ "error: cannot write 'out.part': File too large\n", 1 }, { text, status })
    text, status = bash "$EMBED --input in --output out --resume && wc -l < out"
    assert.are.same({ "10\n", 0 }, { text, status })
    text, status = bash "$EMBED --input . 2>&1"
    assert.are.same({ "error: cannot read the input after line 0: Is a directory\n", 1 }, { text, status })
    text, status = bash "$EMBED --input in --output . 2>&1; ln -s /dev/null link; $EMBED --input in --output link"
    local refused = "error: cannot write '%s': it is %s, expected a file\n"
    assert.are.same({ refused:format(".", "a directory") .. refused:format("link", "a character device"), 1 }, { text, status })
  end)

  it("takes no file that it opens for a standard stream that is closed", function()
    put("in", "bad\n" .. texts(1))
    local text, status = bash [[
      $PIPE --vectors npy --output v < in 2>&-; wc -c < v
      $EMBED --output out < in >&- 2>&-; wc -l < out]]
    assert.are.same({ 128 + 2 * 4 * 32 .. "\n2\n", 0 }, { text, status })
    text, status = bash "$EMBED --input in >&-"
    assert.are.same({ "error: cannot write the output: Bad file descriptor\n", 1 }, { text, status })
    text, status = bash "$EMBED <&-"
    assert.are.same({ "error: cannot read the input after line 0: Bad file descriptor\n", 1 }, { text, status })
  end)

  it("writes where a link leads, and over its own input only once that is read", function()
    put("in", texts(3))
    local text, status = bash [[
      cp in file; ln -s file link; $EMBED --input in --output link; [ -L link ] && wc -l < file
      cp in same; $EMBED --input same --output same; cmp same file
      cp in same.part; $EMBED --input same.part --output same; cmp in same.part
      cp in again; $EMBED --output again --resume < again; cmp in again
      $EMBED --input again >> again; cmp in again; $EMBED < /dev/null > /dev/null]]
    assert.are.same({ table.concat {
      "3\n", "error: 'same.part' is the input, and what is written before it becomes the output\n",
      "error: 'again' is the input and the output: with --resume it would count as done\n",
      "error: the input is the output, too: it would not end\n",
    }, 0 }, { text, status })
  end)

  for signal, status in pairs { TERM = 143, INT = 130 } do
    it("ends with a whole line after SIG" .. signal .. ", idle, at work, or with nobody reading", function()
      put("in", texts(60000, 3))
      local text = bash(([[
        mkfifo idle; exec 3<> idle
        (trap - INT; exec $EMBED < idle > out1) & idle=$!
        (trap - INT; exec $EMBED --input in --output out2) & busy=$!
        (trap - INT; exec $EMBED < in) > >(head -c 1 > began; sleep 0.6; cat > came; mv came out3) & stuck=$!
        echo '{"text":"x"}' >&3
        until [ -s out1 ] && [ -s out2.part ] && [ -s began ]; do sleep 0.05; done
        kill -%s $idle $busy $stuck
        for p in $idle $busy $stuck; do wait $p; echo $?; done
        until [ -e out3 ]; do sleep 0.05; done
        for f in out1 out2.part out3; do tail -c 1 $f | od -An -c; done
        ls out2 2> /dev/null]]):gsub("%%s", signal))
      assert.are.equal(("%d\n%d\n%d\n  \\n\n  \\n\n  \\n\n"):format(status, status, status), text)
    end)
  end

  it("stays as large as it was on input without end", function()
    local text, status = bash [[
      yes '{"id":7,"text":"a text of a few words"}' | (echo $BASHPID > pid; exec $EMBED --keep id) | head -n 36000 |
        luajit -e 'local n = 0
          for line in io.lines() do
            n = n + 1
            if n == 6000 or n == 30000 then
              for text in io.lines("/proc/" .. io.open("pid"):read() .. "/status") do
                if text:match "VmHWM" then print(text:match "%d+") end
              end
            end
          end']]
    local list = lines_of(text)
    assert.are.equal(2, #list, text)
    assert.are.equal(0, status)
    assert.is_true(list[2] - list[1] < 4096, text) -- KiB
  end)

  describe("that is interrupted", function()
    -- The output of kills.sh without the number of kills. The number may be below the wanted one: on a busy machine a kill may
    -- come after the end of the process.
    local function killed(wanted, text)
      local count, rest = text:match "^(%d+) (.*)$"
      assert.is_true(count ~= nil and tonumber(count) >= wanted / 4, text)
      return rest
    end

    it("goes on where it stopped: complete, nothing twice", function()
      put("in", texts(kills * 800 + 4000, 20))
      local text, status = bash(([[
        $EMBED --keep id < in > want
        sh %s/spec/recipes/kills.sh %d out $EMBED --keep id --input in --output out --resume && cmp want out && ls]]):format(top,
        kills))
      assert.are.same({ "kills\nin\nout\nwant\n", 0 }, { killed(kills, text), status })
    end)

    it("goes on with vectors, too", function()
      put("in", texts(4000, 20))
      local text, status = bash(([[
        $PIPE --vectors npy --input in --output want
        sh %s/spec/recipes/kills.sh 2 out $PIPE --vectors npy --input in --output out --resume && cmp want out]]):format(top))
      assert.are.same({ "kills\n", 0 }, { killed(2, text), status })
    end)

    it("takes nothing for its own that is not", function()
      put("in", texts(3))
      local text, status = bash [[
        $EMBED --keep id < in > want
        for bytes in 1 200 $(head -n 2 want | wc -c) 500 $(wc -c < want); do
          head -c $bytes want > out.part
          $EMBED --keep id --input in --output out --resume; cmp want out; rm out
        done
        head -n 1 want > first; (cat first; tail -n 1 want) > out.part
        $EMBED --keep id --input in --output out --resume
        for changed in "--input in" "--keep id --input in --as v" "--keep id --input in --dimensions 4"; do
          cp first out.part; $EMBED $changed --output out --resume; cmp first out.part
        done
        $PIPE --vectors npy --input in --output v; mv v v.part; $EMBED --input in --output v --resume]]
      local refused = "error: cannot go on with '%s.part': its answer %d is not what this input, model and options give\n"
      text = text:gsub("(v.part': its answer) %d+", "%1 1") -- however many of its bytes are ends of lines
      local want = refused:format("out", 2) .. refused:format("out", 1):rep(3) .. refused:format("v", 1)
      assert.are.same({ want, 1 }, { text, status })
      text, status = bash [[cp want out; rm out.part
        $EMBED --input in --output out --resume; wc -l < out]] -- whole: nothing is done
      assert.are.same({ "3\n", 0 }, { text, status })
      text, status = bash "echo no > out; $EMBED --input in --output out; wc -l < out" -- not told to go on: made anew
      assert.are.same({ "3\n", 0 }, { text, status })

      put("more.part", ("{}\n"):rep(4))
      text, status = bash "$EMBED --input in --output more --resume"
      assert.are.same({ "error: 'more.part' has 4 answers, the input 3 lines: it is not of this input\n", 1 }, { text, status })
      put("v.part", require("perigee.pipe.vectors").header(0, 16) .. ("x"):rep(200))
      text, status = bash "$PIPE --vectors npy --input in --output v --resume"
      assert.are.same({ "error: cannot go on with 'v.part': it holds no vectors of 32\n", 1 }, { text, status })
    end)

    it("goes on in FP32, too, of a folder and of an artifact", function()
      put("in", texts(40))
      perigee.load(models.path "embedder"):save(dir .. "/fp32")
      local text, status = bash [[
        EMBED="luajit ${PIPE#luajit } --activations f32"
        for model in "$EMBED" "${PIPE%% *} $(echo $PIPE | cut -d' ' -f2) fp32"; do
          F32="$model --task embed --vectors base64 --input in --output out --resume"
          $F32; mv out want
          head -n 7 want > out.part; $F32 --window 3 --threads 2; cmp out want; rm out
          (head -n 7 want; tail -n 1 want) > out.part; $F32
          rm out.part want
        done]]
      local refused = "error: cannot go on with 'out.part': its answer 8 is not what this input, model and options give\n"
      assert.are.same({ refused .. refused, 0 }, { text, status })
    end)

    it("is alone with its file", function()
      put("in", texts(60000, 3))
      local text = bash [[
        $EMBED --input in --output out & first=$!
        until [ -s out.part ]; do sleep 0.05; done
        $EMBED --input in --output out; echo $?
        kill $first; wait $first 2> /dev/null
        head -n 5 in > five
        $EMBED --input five --output out && wc -l < out]]
      assert.are.equal("error: cannot write 'out.part': another process is writing it\n1\n5\n", text)
    end)
  end)

  it("says how far it is if asked to", function()
    put("in", texts(2000))
    local text = bash "$EMBED --progress --input in --output out; $EMBED --quiet --input in --output out"
    assert.matches("^0 lines, 0 a second, 0.0 %%, %-\n2000 lines, %d+ a second\n$", text)
  end)

  it("refuses options that go ill together or have no effect, with one line", function()
    put("in", "{}\n")
    q:save(dir .. "/model")
    for words, why in pairs {
      ["--resume"] = "--resume continues a file: expected --output",
      ["--vectors npy"] = "--vectors npy needs a file: expected --output",
      ["--vectors npy --output v --keep id"] = "--keep has no effect with --vectors npy",
      ["--lines --keep id"] = "--keep has no effect with --lines", ["--lines --text a"] = "--text has no effect with --lines",
      ["--pairs"] = "--pairs has no effect without --lines", ["--task ner --pair b"] = "--pair has no effect with the task ner",
      ["--task qa --vectors npy --output v"] = "--vectors has no effect with the task qa, only with embed",
      ["--task qa --scores"] = "--scores has no effect with the task qa, only with classify",
      ["--progress --quiet"] = "--progress and --quiet exclude each other",
      ["--keep id,result"] = "--keep result: pipe.lua writes that field itself",
      ["--task embed --top-k 2"] = "--top-k has no effect with the task embed, only with classify, fill_mask, qa,",
      ["--task embed --dimensions 0"] = "--dimensions is 0, expected an integer of at least 1",
      ["--task embed --long no"] = "--long is the string 'no', expected one of error, truncate, windows",
      ["--task classify --scores --top-k 2"] = "--scores has no effect with --top-k",
      ["--task zeroshot"] = "--task zeroshot needs --labels: expected a list of texts",
      ["--task sing"] = "--task is the string 'sing', expected one of classify, embed",
      ["--require nowhere.lua"] = "--require: cannot open nowhere.lua",
      ["--as error"] = "--as is error, a field that pipe.lua writes itself",
      ["--window 0"] = "--window is 0, expected an integer of at least 1",
      ["--window x"] = "--window is the string 'x', expected an integer of at least 1",
      ["--max-errors 2"] = "--max-errors is 2, expected a number from 0 to 1", ["--windw 2"] = "unknown option '--windw'",
      ["--window 2 --window 3"] = "--window is given 2 times, expected once",
      ["--input nowhere"] = "cannot read 'nowhere': No such file or directory",
      ["--task classify"] = "classifier",
      ["--model /nowhere"] = "expected one of them",
      ["--samples 4"] = "--samples has no effect without --calibration",
      ["--stride 4"] = "--stride has no effect without --long windows", ["--long error --stride 4"] = "--stride has no effect",
      ["--activations f32 --calibration in"] = "--calibration has no effect with --activations f32",
    } do
      local text, status = bash("$PIPE " .. words .. " < in")
      assert.are.equal(1, status, words .. text)
      assert.matches(why, text, 1, true)
      assert.matches("^error: [^\n]*\n", text)
    end
    local of_artifact = "luajit %s/recipes/pipe.lua model %s < in"
    for words, why in pairs {
      ["--activations static"] = "--activations has no effect on an artifact", ["--samples 4"] = "--samples has no effect on an",
      ["--max-tokens 9"] = "--max-tokens has no effect on an", ["--strict-files"] = "--strict-files has no effect on an artifact",
    } do
      local text, status = bash(of_artifact:format(top, words))
      assert.are.equal(1, status, text)
      assert.matches(why, text, 1, true)
    end
  end)

  it("says what is wrong with a model that is none", function()
    local text, status = bash(([[mkdir empty; for model in empty nowhere; do
      luajit %s/recipes/pipe.lua $model < /dev/null && exit; done; exit 1]]):format(top))
    assert.are.equal(1, status)
    assert.matches("error: 'empty' is not a checkpoint: it has no config.json", text, 1, true)
    assert.matches("error: cannot open 'nowhere': No such file or directory", text, 1, true)
  end)

  it("ends at once, with nothing written, where no line could be answered, whatever the task, without input too", function()
    put("in", texts(3))
    q:save(dir .. "/embedder")
    local run = ("luajit %s/recipes/pipe.lua"):format(top)
    for _, case in ipairs {
      { "embedder", "embed" }, { "pairs", "classify" }, { "qa", "qa" }, { "ner", "ner" }, { "cross", "rerank" },
      { "nli", "zeroshot --labels a,b" }, { "mlm", "fill_mask" },
    } do
      local name, task = case[1], case[2]
      if name ~= "embedder" then
        local folder = name == "pairs" and models.path "pairs" or "spec/golden/tasks/" .. name
        perigee.load(folder):quantize({ activations = "dynamic" }):save(dir .. "/" .. name)
      end
      for _, setting in ipairs { "PERIGEE_ISA=other", name == "embedder" and "PERIGEE_THREADS=0" or nil } do
        local command = ("%s %s %s --task %s "):format(setting, run, name, task)
        local text, status = bash(command .. "< in; " .. command .. "--output out < /dev/null; s=$?; ls out; exit $s")
        assert.are.equal(1, status, text)
        assert.are.equal(2, select(2, text:gsub("error: [^\n]*" .. setting .. "[^\n]*\n", "")), text)
        assert.matches("cannot access 'out'", text, 1, true)
        assert.is_nil(text:find '"error"', text)
      end
    end
    local failed = false -- the process needs memory for the longest input before it answers the first line
    for kilobytes = 6000, 54000, 8000 do
      local text, status = bash(("(ulimit -v %d; $EMBED < in)"):format(kilobytes))
      local answered = select(2, text:gsub('"result"', ""))
      local said = ("%d KB, status %d: %s"):format(kilobytes, status, text)
      assert.is_true(status == 0 and answered == 3 or status ~= 0 and answered == 0, said)
      failed = failed or status ~= 0
    end
    assert.is_true(failed) -- with the least of these no program starts
  end)

  describe("whose lines have no answer", function()
    local bad = ("{}\n"):rep(300)

    it("ends after 256 of them in a row, and again when it is resumed", function()
      put("in", texts(10) .. bad .. texts(10))
      local said = "error: 256 of 266 lines have no answer, the last 256 lines in a row; with %-%-max%-errors 1 it goes on; "
        .. "the first: line 1?1: field \"text\" is missing\n"
      local run = "$EMBED --input in --output out"
      local text, status = bash(run .. "; " .. run .. " --resume; s=$?; wc -l < out.part; exit $s")
      assert.are.equal(1, status)
      assert.matches("^" .. said .. "error: 256 of 266 lines .*; the first: line 266: field \"text\" is missing\n266\n$", text)
      text, status = bash "$EMBED --input in --output out --resume --max-errors 1; wc -l < out"
      assert.are.equal(0, status)
      assert.matches("^pipe: 45 of 55 lines have no answer; the first: line 266: [^\n]*\n320\n$", text)
    end)

    it("ends if all of a short input are such", function()
      put("in", "bad\n{}\n")
      local text, status = bash "$EMBED < in 2> err; s=$?; cat err >&2; exit $s"
      assert.are.equal(1, status)
      assert.matches("error: 2 of 2 lines have no answer, all there are; with --max-errors 1 that is no failure; the first",
        text, 1, true)
      text, status = bash "$EMBED --max-errors 1 < in && $EMBED < /dev/null"
      assert.are.equal(0, status, text)
    end)

    it("ends by the share of them, at the end or after 256 lines, resumed too", function()
      put("in", texts(18) .. "bad\n" .. texts(1))
      assert.are.equal(0, (select(2, bash "$EMBED --max-errors 0.05 < in")))
      local run = "$EMBED --max-errors 0.04 --input in --output out --resume; "
      local text, status = bash(run .. run .. "s=$?; ls out; exit $s")
      assert.are.equal(1, status)
      assert.matches("error: 1 of 20 lines have no answer, more than --max-errors 0.04 allows; the first: line 19", text, 1, true)
      assert.matches("error: 1 of 20 lines have no answer, more than --max-errors 0.04 allows\n", text, 1, true)
      put("in", texts(230) .. ("bad\n"):rep(30) .. texts(1000))
      text, status = bash "$EMBED --max-errors 0.1 --window 16 < in | wc -l; exit ${PIPESTATUS[0]}"
      assert.are.equal(1, status)
      assert.matches("error: 26 of 256 lines have no answer, more than --max-errors 0.1 allows", text, 1, true)
      run = "$PIPE --vectors npy --max-errors 0.01 --input in --output v"
      text, status = bash(run .. "; " .. run .. " --resume 2>&1 | tail -n 1; exit ${PIPESTATUS[0]}")
      assert.are.equal(1, status)
      assert.matches("error: 26 of 256 lines have no answer, more than --max-errors 0.01 allows; the first: line 256: no valid",
        text, 1, true)
    end)

    it("counts by no field that was kept", function()
      put("in", ('{"a":{"line":1,"error":"x"},"b":",\\"line\\":1,\\"error\\":\\"","text":"t"}\n'):rep(300))
      local run = "$EMBED --max-errors 0 --keep a,b --input in --output out --resume"
      local text, status = bash(run .. "; head -n 280 out > out.part; rm out; " .. run .. "; wc -l < out")
      assert.are.same({ "300\n", 0 }, { text, status })
    end)
  end)
end)
