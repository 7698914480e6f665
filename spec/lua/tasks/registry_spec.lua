-- The registry of tasks: what is derived from a declaration, and tasks that scripts register.
local cjson = require "cjson"
local files = require "spec.support.files"
local models = require "spec.support.models"
local perigee = require "perigee"
local failure = require "spec.support.failure"

-- A task of a script: the largest value of each text's hidden states, with a head of its own.
local SCRIPT = [[
local inputs = require "perigee.run.inputs"
local options = require "perigee.options"
local perigee = require "perigee"

local peak = {
  doc = "the largest value of the hidden states of a text",
  forms = { "text", "pair" },
  options = inputs.options { scale = { "number", 0, 10, default = 1, help = "Factor of the value" } },
  written = { rounded = { "flag", help = "Write an integer" } },
  head = {
    outputs = function(model) return { most = { "sequences", model.config.hidden_size } } end,
    draw = function(g, x) g:output("most", g:pool(x, "max")) end,
  },
}

--- model:peak(texts, { scale = }): the largest value of the hidden states of each text.
function peak.run(encoder, given, opts)
  local read = options.read(opts, peak.options, "peak")
  local parts, batch = encoder:gather("peak", given, "peak", inputs.how(read, { forms = peak.forms }, "peak"))
  local list = {}
  for i, row in ipairs(parts.most:totable()) do
    list[i] = { peak = math.max(unpack(row)) * read.scale }
  end
  parts.most:release()
  return batch.single and list[1] or list, batch
end

function peak.result(answer, how)
  return { peak = how.rounded and math.floor(answer.peak) or answer.peak }
end

peak.evaluate = {
  peaks = {
    run = function(set)
      return {
        units = set.texts,
        run = function(e, units)
          local list = {}
          for i, answer in ipairs((e:peak(units))) do
            list[i] = answer.peak
          end
          return list
        end,
        metrics = function(answers) return { { "mean", require("perigee.evaluate.metrics").mean(answers) } } end,
      }
    end,
  },
}

perigee.register_task("peak", peak)
]]

local TEXTS = { "a text", "another one, longer than the first", "" }

-- The largest value of the hidden states of each text, from model:hidden.
local function peaks(model)
  local list = {}
  for i, text in ipairs(TEXTS) do
    local hidden = model:hidden(text)
    list[i] = -math.huge
    for _, row in ipairs(hidden:totable()) do
      list[i] = math.max(list[i], unpack(row))
    end
    hidden:release()
  end
  return list
end

local function values(answers)
  local list = {}
  for i, answer in ipairs(answers) do
    list[i] = answer.peak
  end
  return list
end

describe("the registry of tasks", function()
  it("has a method, a declaration and a documented function for each name", function()
    local model = perigee.load(models.path "embedder")
    for _, name in ipairs(perigee.tasks.names()) do
      local task = perigee.tasks[name]
      assert.equal(name, task.name)
      assert.is_function(model[name])
      assert.is_string(task.doc, name)
      local documented = debug.getinfo(perigee.tasks.documented(model[name]), "S").source
      assert.matches("tasks/" .. name .. ".lua", documented, 1, true)
    end
    model:release()
  end)

  it("is what the tables of the documents list", function()
    local api, recipes = models.read "lua/API.md", models.read "recipes/PIPE.md"
    for _, name in ipairs(perigee.tasks.names()) do
      assert.matches("\n| `m:" .. name .. "(", api, 1, true)
      assert.matches("\n| `" .. name .. "` |", recipes, 1, true)
    end
  end)
end)

describe("a task of a script", function()
  local script, model, q

  setup(function()
    model = perigee.load(models.path "embedder")
    q = model:quantize { activations = "dynamic" }
    assert(loadstring(SCRIPT, "@peak.lua"))()
  end)
  before_each(function()
    script = files.write(SCRIPT)
  end)
  after_each(files.clean)
  teardown(function()
    perigee.register_task("peak", nil)
    model:release()
  end)

  it("is a method of all models, a task of streams, and a job of evaluate", function()
    for _, m in ipairs { model, q } do
      assert.same(peaks(m), values(m:peak(TEXTS)))
      assert.equal(2 * m:peak("a text").peak, m:peak("a text", { scale = 2 }).peak)
      local streamed = {}
      for _, answer in m:stream(TEXTS, { task = "peak" }) do
        streamed[#streamed + 1] = answer
      end
      assert.same(peaks(m), values(streamed))
    end
    assert.equal("peak has no option scal, only long, scale, stride, tokens, truncation_side (did you mean \"scale\"?)",
      (failure(model.peak, model, "a", { scal = 1 }):gsub("^[^ ]*:%d+: ", "")))
    local set = perigee.evaluate.read(files.write "a text\t0.5\nanother\t0.1\nthe third\t0.7\n")
    assert.equal("mean", perigee.evaluate.run(model, set, { task = "peaks" }).metric)
  end)

  it("is in artifacts, which need the script to open", function()
    local path = files.write ""
    for _, m in ipairs { model, q } do
      m:save(path)
      local a = perigee.open(path)
      assert.same(peaks(m), values(a:peak(TEXTS)))
      a:release()
    end
    perigee.register_task("peak", nil)
    assert.is_nil(model.peak)
    assert.matches("model%.heads%[%d+%] is the string 'peak', expected one of classify, embed", failure(perigee.open, path))
    assert(loadstring(SCRIPT, "@peak.lua"))()
  end)

  it("is a task of pipe.lua by --require, of a folder and of an artifact", function()
    if os.getenv "PERIGEE_HARD" then
      return pending "processes, in which the library does what it does above"
    end
    local artifact = files.write ""
    q:save(artifact)
    local input = files.write(table.concat(TEXTS, "\n") .. "\n")
    for _, path in ipairs { artifact, models.path "embedder" } do
      local command = "luajit recipes/pipe.lua %s --quiet --require %s --lines --task peak --scale 2 < %s 2>&1"
      local process = assert(io.popen(command:format(path, script, input)))
      local i, want = 0, peaks(q)
      for line in process:lines() do
        i = i + 1
        assert.near(2 * want[i], cjson.decode(line).result.peak, 1e-6)
      end
      process:close()
      assert.equal(#TEXTS, i)
    end
  end)

  it("is refused with a clear error if its declaration is wrong", function()
    local function refuses(message, name, declaration)
      assert.matches(message, failure(perigee.register_task, name, declaration), 1, true)
    end
    local function run() end
    local forms = { "text" }
    refuses('there is a task "peak" already; a task needs a name of its own', "peak", { run = run, forms = forms })
    refuses('there is a task "qa" already', "qa", { run = run, forms = forms })
    for _, taken in ipairs { "save", "set", "alpha", "config", "stream", "names" } do
      refuses(('models have a method, a setting or a field "%s" already'):format(taken), taken, { run = run, forms = forms })
    end
    refuses("the name is the string 'a-b', expected letters, digits and _, a letter first", "a-b", { run = run, forms = forms })
    refuses("the name is nil, expected letters", nil, {})
    refuses("the declaration is 5, expected a table", "mine", 5)
    refuses('the task "mine": the field run is missing, expected a function', "mine", { forms = forms })
    refuses('the task "mine": the field forms is missing, expected a table', "mine", { run = run })
    refuses('the task "mine" has no field form, only architectures, doc', "mine", { run = run, forms = forms, form = "text" })
    refuses('(did you mean "forms"?)', "mine", { run = run, forms = forms, form = "text" })
    refuses('the task "mine": run is true, expected a function', "mine", { run = true, forms = forms })
    refuses('the task "mine": forms[1] is the string \'texts\', expected one of ids, pair', "mine",
      { run = run, forms = { "texts" } })
    refuses('the task "mine": forms[1] is nil, expected a text', "mine", { run = run, forms = {} })
    refuses('the task "mine": pair has 1 entries, expected 2', "mine", { run = run, forms = forms, pair = { "a" } })
    refuses('the task "mine": head: the field outputs is missing', "mine", { run = run, forms = forms, head = {} })
    refuses('the task "mine": head is "zeroshot", expected a table, or the name of a task that has a head of its own', "mine",
      { run = run, forms = forms, head = "zeroshot" })
    refuses('there is no task "mine" that a script registered', "mine", nil)
    refuses('there is no task "qa" that a script registered', "qa", nil)
    assert.is_nil(perigee.tasks.get "mine")
  end)
end)
