--- Tasks: what a model can be asked to do. One file here declares everything about one task; this module is the registry.
--
--   perigee.tasks.qa.run(model, { question = "Who?", context = "She did." })     -- the same as model:qa(...)
--   perigee.tasks.names()                                                        -- { "embed", "classify", ... }
--   perigee.register_task("shout", { forms = { "text" }, run = ... })            -- a task from a script
--
-- The methods of models, model:stream, the heads of checkpoints and artifacts, pipe.lua, evaluate and the Python module are made
-- from the declarations. A declaration is a table:
--   run            function(model, given, options) -> answers, batch. given: one input or a list of inputs. The comment above
--                  this function is the documentation of the method
--   forms          the forms of input that the task takes (run/inputs.lua): "text", "pair", "ids", "question", "words"; or
--                  "query" for { query =, documents = { ... } }
--   doc            one sentence that says what the task answers
--   options        the task's options as perigee.options describes them. Each task should have those of inputs.options
--   method         function(model, ...) -> answers, batch, if the arguments of model:NAME are not those of run
--   architectures  ends of class names in config.json's architectures, such as "ForQuestionAnswering". A checkpoint of such a
--                  class is for this task. A whole class name is compared first
--   head           the layers that the task runs. The name of a task: the task runs that task's head. nil: it runs none of its
--                  own. Or a table:
--                    outputs   function(model) -> { NAME = { rows, width } }: the outputs of the head. rows: what one row is
--                              for, "tokens", "sequences" or "marked" (marked tokens)
--                    draw      function(g, x, model, weights) that makes these outputs by g:output. x: the hidden states. If
--                              there is none, the model's definition has a function of the task's name, and its result is
--                              the one output "logits"
--                    needs     "labels": config.json's labels are read first. "pooling": how the checkpoint pools
--                    optional  true: the architecture's class does not promise that the head is there. A checkpoint without it
--                              is for embed
--   pair           two names of fields: how a row with two texts becomes an input { [name 1] = text, [name 2] = text }. Without
--                  it two texts are the pair { a, b }
--   pair_list      true: the second field is a list of texts
--   result         function(answer, how) -> what pipe.lua writes as JSON. nil: the answer without `logits` and `value`
--   written        options of pipe.lua that only change what it writes, described like `options`; `how` has their values
--   vectors        true: an answer is a tensor [H], which pipe.lua writes as --vectors says
--   evaluate       how perigee.evaluate judges the task: { JOB = { run =, options =, kind = } }, see evaluate/tasks.lua; or the
--                  name of a module that returns such a table
local nearest = require "perigee.base.nearest"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local raise = pgee.raise

local tasks = {}

-- The files of this folder that declare a task, in the order in which tasks are listed.
local NAMES = { "embed", "classify", "zeroshot", "rerank", "qa", "ner", "fill_mask" }

local names, loaded, methods = {}, {}, {} -- names in order; declarations by name; names by method
local base, classes = nil, {} -- the class that has the methods of tasks; the classes of models, which inherit from it

--- The task of a checkpoint whose config.json names no task: a model without a head makes vectors.
tasks.DEFAULT = "embed"

---- Checking a declaration --------------------------------------------------------------------------------------------

local FIELDS = {
  run = "function", forms = "table", doc = "string", options = "table", method = "function", architectures = "table",
  head = "table or string", pair = "table", pair_list = "boolean", result = "function", written = "table", vectors = "boolean",
  evaluate = "table or string",
}
local OF_HEAD = { outputs = "function", draw = "function", needs = "string", optional = "boolean" }
local NEEDED = { run = true, forms = true, outputs = true }
local FORMS = { text = true, pair = true, ids = true, question = true, words = true, query = true }
local NEEDS = { labels = true, pooling = true }

-- Raises an error unless the fields of `given` are those of `known` and of their types, and those that are needed are there.
local function check_fields(given, known, what)
  for field in pairs(given) do
    if not known[field] then
      local list = options.names(known)
      error(("%s has no field %s, only %s%s"):format(what, type(field) == "string" and field or pgee.describe(field),
        table.concat(list, ", "), nearest.hint(field, list)), 0)
    end
  end
  for field, kinds in pairs(known) do
    local kind = type(given[field])
    if kind == "nil" and NEEDED[field] then
      error(("%s: the field %s is missing, expected a %s"):format(what, field, kinds), 0)
    elseif kind ~= "nil" and not kinds:find(kind, 1, true) then
      error(("%s: %s is %s, expected a %s"):format(what, field, pgee.describe(given[field]), kinds), 0)
    end
  end
end

local function check_texts(list, count, what)
  for i = 1, math.max(#list, 1) do
    if type(list[i]) ~= "string" then
      error(("%s[%d] is %s, expected a text"):format(what, i, pgee.describe(list[i])), 0)
    end
  end
  if count and #list ~= count then
    error(("%s has %d entries, expected %d"):format(what, #list, count), 0)
  end
end

local function check_head(head, what)
  if type(head) == "table" then
    check_fields(head, OF_HEAD, what)
    if head.needs then
      options.choice(head.needs, NEEDS, what .. ": needs")
    end
  elseif head and not (tasks.get(head) and type(tasks.get(head).head) == "table") then
    error(("%s is %q, expected a table, or the name of a task that has a head of its own"):format(what, head), 0)
  end
end

local function check(name, declaration)
  local what = ("the task %q"):format(name)
  check_fields(declaration, FIELDS, what)
  check_texts(declaration.forms, nil, what .. ": forms")
  for i, form in ipairs(declaration.forms) do
    options.choice(form, FORMS, ("%s: forms[%d]"):format(what, i))
  end
  if declaration.architectures then
    check_texts(declaration.architectures, nil, what .. ": architectures")
  end
  if declaration.pair then
    check_texts(declaration.pair, 2, what .. ": pair")
  end
  check_head(declaration.head, what .. ": head")
end

---- The registry ------------------------------------------------------------------------------------------------------

-- The same function; its errors blame the line that called these modules.
local function public(f)
  return function(...)
    local answers, batch = raise(f, ...)
    return answers, batch
  end
end

-- Takes a declaration in: `run` and `method` are replaced by functions whose errors blame their caller.
local function admit(name, declaration)
  local task = { name = name, options = {}, own_method = declaration.method or declaration.run }
  for field, value in pairs(declaration) do
    task[field] = value
  end
  task.run, task.method = public(task.run), nil
  loaded[name] = task
  return task
end

local function known(name)
  for i, other in ipairs(names) do
    if other == name then
      return i
    end
  end
end

--- The declaration of a task, loaded when it is first asked for; nil if there is no such task.
function tasks.get(name)
  return loaded[name] or known(name) and admit(name, require("perigee.tasks." .. name)) or nil
end

--- The names of all tasks, a list.
function tasks.names()
  return { unpack(names) }
end

--- All tasks: { name = declaration }.
function tasks.all()
  local all = {}
  for _, name in ipairs(names) do
    all[name] = tasks.get(name)
  end
  return all
end

--- The name of the head that a task runs: its own name, that of another task, or "hidden" if the declaration names no head.
function tasks.head_of(name)
  local task = tasks.get(name)
  if not task then
    pgee.error(("head_of: the task is %s, expected one of %s"):format(pgee.describe(name), table.concat(names, ", ")))
  end
  local head = task.head
  return type(head) == "string" and head or head and name or "hidden"
end

--- The tasks that have a head of their own, a list of declarations.
function tasks.with_heads()
  local list = {}
  for _, name in ipairs(names) do
    list[#list + 1] = type(tasks.get(name).head) == "table" and loaded[name] or nil
  end
  return list
end

--- The task that a class name in config.json's architectures stands for: by the whole name, else by its end; else nil.
function tasks.of_architecture(class)
  if type(class) ~= "string" then
    return nil
  end
  local ending = class:match "For%u%a*$"
  for _, wanted in ipairs { class, ending } do
    for _, name in ipairs(names) do
      for _, architecture in ipairs(tasks.get(name).architectures or {}) do
        if architecture == wanted then
          return name
        end
      end
    end
  end
end

-- Makes model:NAME. Its first call loads the task's file: a process that opens an artifact runs one task.
local function add_method(name)
  local method = public(function(...) return tasks.get(name).own_method(...) end)
  methods[method] = name
  base[name] = method
end

--- For run/encoder.lua: gives a class the methods of all tasks, those that are registered later, too.
function tasks.give_methods(class)
  if type(class) ~= "table" then
    pgee.error(("give_methods: the class is %s, expected a table"):format(pgee.describe(class)))
  end
  base = class
  for _, name in ipairs(names) do
    add_method(name)
  end
end

--- For run/encoder.lua: a class that inherits these methods. A task must not have the name of one of its own methods.
function tasks.inherited_by(class)
  if type(class) ~= "table" then
    pgee.error(("inherited_by: the class is %s, expected a table"):format(pgee.describe(class)))
  end
  classes[#classes + 1] = class
end

--- For the prompt: the function in the task's file that has the documentation of `f`, a method of models; `f` itself if it is
-- not a task's.
function tasks.documented(f)
  local task = methods[f] and tasks.get(methods[f])
  return task and task.own_method or f
end

local function forget(name)
  local at = known(name)
  if not at or at <= #NAMES then
    error(("register_task: there is no task %q that a script registered"):format(name), 0)
  end
  table.remove(names, at)
  loaded[name], methods[base[name]], base[name] = nil, nil, nil
end

-- Fields that models have besides methods and settings.
local OF_MODELS = {
  architecture = true, checkpoint = true, choices = true, config = true, definition = true, dir = true, file = true, heads = true,
  kernel = true, limit = true, model = true, positions = true, settings = true, stats = true, task = true, types = true,
  vocabulary = true, weights = true,
}

-- Whether a model has a method, a setting or a field of that name.
local function is_taken(name)
  require "perigee.model"
  require "perigee.artifact.open"
  for _, class in ipairs { base, unpack(classes) } do
    if rawget(class, name) ~= nil then
      return true
    end
  end
  return OF_MODELS[name] or rawget(tasks, name) ~= nil or require("perigee.quantize.settings").new().values[name] ~= nil
end

local function register(name, declaration)
  if type(name) ~= "string" or not name:find "^%a[%w_]*$" then
    error(("register_task: the name is %s, expected letters, digits and _, a letter first"):format(pgee.describe(name)), 0)
  end
  require "perigee.run.encoder"
  if declaration == nil then
    return forget(name)
  elseif known(name) then
    error(("register_task: there is a task %q already; a task needs a name of its own"):format(name), 0)
  elseif is_taken(name) then
    error(("register_task: models have a method, a setting or a field %q already; a task needs another name"):format(name), 0)
  elseif type(declaration) ~= "table" then
    error(("register_task: the declaration is %s, expected a table"):format(pgee.describe(declaration)), 0)
  end
  check(name, declaration)
  names[#names + 1] = name
  admit(name, declaration)
  add_method(name)
end

--- register(name, declaration): makes a task known; this is perigee.register_task. The fields of a declaration are those that
-- this file begins with. The name must be free. nil instead of a declaration: forgets a task that a script registered.
function tasks.register(name, declaration)
  raise(register, name, declaration)
end

for i, name in ipairs(NAMES) do
  names[i] = name
end

return setmetatable(tasks, {
  __index = function(_, name) return tasks.get(name) end,
  __names = function() return { tasks.all() } end,
})
