--- Inputs: turns what a user gives into one packed batch of token ids.
--
-- An input has one of these forms:
--   "a text"
--   { "a text", "its pair" }
--   { question = "...", context = "..." }     a pair of which the context is cut into windows
--   { words = { "one", "two" } }              a text that is already in words; no token belongs to two words
--   { ids = { ... }, types = { ... } }        token ids with the special tokens, and token types: lists or tensors
-- Functions that take inputs take one input or a list of inputs. The option `long` says what happens to a text that is longer
-- than the limit: "truncate", "error" or "windows" (several sequences). The batch lists the inputs that were cut.
local Batch = require "perigee.run.batch"
local options = require "perigee.options"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local windows = require "perigee.run.windows"

-- Defaults: the tokens that two windows share (BERT's stride for questions), and max tokens of a question's window.
local STRIDE, TOKENS = 128, 384

---- Texts -------------------------------------------------------------------------------------------------------------

local function fail(where, ...)
  error(("%s: "):format(where) .. string.format(...), 0)
end

local function encode(batch, a, b, max_tokens)
  local e = batch.model:tokenizer():encode(a, b, { max_tokens = max_tokens, truncation_side = batch.side })
  e.texts = { a, b }
  return e
end

-- The side on which the batch's texts are cut off: "left" or "right".
local function side_of(batch)
  return batch.side or batch.model:tokenizer().truncation_side
end

-- The windows of an encoding that is too long. how: { long =, cut =, tokens =, stride =, side =, fixed = }.
local function cut(e, how, where)
  local text = windows.text(e, how.cut)
  local list, stride = windows.cut(e, text, how.tokens, how.stride, { fixed = how.fixed, left = how.side == "left" })
  if not list then
    local which = text == 1 and "first" or "second"
    fail(where, "it has %d tokens without the text that is cut (the %s), which leaves no room for it within %d tokens",
      #e.ids - math.max(windows.length(e, text) - (how.fixed or 0), 0), which, how.tokens)
  end
  return list, stride
end

-- Adds an encoding to the batch: whole if it fits, else cut as `how` says.
local function add_encoding(batch, e, how, where)
  if #e.ids <= how.tokens then
    return batch:put(windows.whole(e))
  elseif how.long == "error" then
    fail(where, 'it has %d tokens, at most %d are taken; long = "truncate" or "windows" takes longer ones', #e.ids, how.tokens)
  end
  local list, stride = cut(e, how, where)
  if how.long == "truncate" then
    local kept = how.side == "left" and list[#list] or list[1]
    table.insert(batch.truncated, { input = batch.count, dropped = #e.ids - windows.size(kept), where = where })
    return batch:put(kept)
  end
  if #list > 1 then
    table.insert(batch.windows, { input = batch.count, windows = #list, stride = stride, where = where })
  end
  for _, window in ipairs(list) do
    batch:put(window)
  end
end

-- How long inputs of this batch are cut: the argument `how` of add_encoding.
local function how_of(batch)
  local tokens = batch.limit
  return {
    long = batch.long or "truncate", cut = batch.cut, tokens = tokens, side = side_of(batch),
    stride = batch.stride or math.min(STRIDE, math.floor(tokens / 4)),
  }
end

-- Adds a text or a pair of which only the token ids are needed: the tokenizer writes them into the batch's arrays.
local function add_fast(batch, a, b, where)
  local limit = batch.limit
  batch:reserve(limit)
  local length, dropped = batch.model:tokenizer():encode_into(batch.ids + batch.T, batch.types + batch.T, limit, a, b, nil,
    batch.side)
  if dropped > 0 then
    if how_of(batch).long ~= "truncate" or batch.cut ~= "longest" then
      return add_encoding(batch, encode(batch, a, b), how_of(batch), where)
    end
    table.insert(batch.truncated, { input = batch.count, dropped = dropped, where = where })
  end
  batch:finish(length)
end

-- Adds a text or a pair and keeps its encoding.
local function add_kept(batch, a, b, where)
  local e, how = encode(batch, a, b), how_of(batch)
  if #e.ids > batch.limit and how.long == "truncate" and how.cut == "longest" then
    local whole = #e.ids
    e = encode(batch, a, b, batch.limit)
    table.insert(batch.truncated, { input = batch.count, dropped = whole - #e.ids, where = where })
  end
  add_encoding(batch, e, how, where)
end

-- The number of tokens at the text's beginning that belong to the prompt: as many as the prompt alone has without special tokens.
local function prompt_tokens(batch, a)
  local alone, tokens = encode(batch, batch.prompt), 0
  for i = 1, #alone.ids do
    tokens = tokens + (alone.sequences[i] == 1 and 1 or 0)
  end
  return math.min(tokens, windows.length(a, 1))
end

local function add_prompted(batch, a, b, where)
  a = batch.prompt .. a
  if batch.long ~= "windows" then
    return add_fast(batch, a, b, where)
  end
  local e, how = encode(batch, a, b), how_of(batch)
  how.fixed = windows.text(e, how.cut) == 1 and prompt_tokens(batch, e) or 0
  add_encoding(batch, e, how, where)
end

local function add_text(batch, a, b, where)
  if batch.prompt then
    return add_prompted(batch, a, b, where)
  elseif batch.keep then
    return add_kept(batch, a, b, where)
  end
  return add_fast(batch, a, b, where)
end

---- Other forms -------------------------------------------------------------------------------------------------------

-- Functions that add an input to a batch, by its form: (batch, input, where).
local add = {}

function add.text(batch, input, where)
  add_text(batch, input, nil, where)
end

function add.pair(batch, input, where)
  add_text(batch, input[1], input[2], where)
end

local function check_keys(input, known, where)
  for key in pairs(input) do
    if not known[key] then
      fail(where, "unknown key %q; expected %s", tostring(key), table.concat(options.names(known), " and "))
    end
  end
end

local QUESTION = { question = true, context = true }

function add.question(batch, input, where)
  check_keys(input, QUESTION, where)
  for key in pairs(QUESTION) do
    if type(input[key]) ~= "string" then
      fail(where, "%s is %s, expected a text", key, pgee.describe(input[key]))
    end
  end
  local tokens = math.min(batch.tokens or TOKENS, batch.limit)
  add_encoding(batch, encode(batch, input.question, input.context), {
    long = batch.long or "windows", cut = "second", tokens = tokens, stride = batch.stride or STRIDE, side = side_of(batch),
  }, where)
end

local WORDS = { words = true }

function add.words(batch, input, where)
  check_keys(input, WORDS, where)
  if type(input.words) ~= "table" then
    fail(where, "words is %s, expected a list of strings", pgee.describe(input.words))
  end
  options.list(input.words, where .. ": words: expected a list of strings")
  for i = 1, #input.words do
    if type(input.words[i]) ~= "string" then
      fail(where, "words[%d] is %s, expected a string", i, pgee.describe(input.words[i]))
    end
  end
  local e = batch.model:tokenizer():encode_words(input.words)
  e.list = input.words
  add_encoding(batch, e, how_of(batch), where)
end

local function check_integers(list, what, limit, where)
  for i = 1, #list do
    local v = tonumber(list[i])
    if not v or v % 1 ~= 0 or v < 0 or v >= limit then
      fail(where, "%s[%d] is %s, expected an integer from 0 to %d", what, i, pgee.describe(list[i]), limit - 1)
    end
  end
end

local IDS = { ids = true, types = true }

function add.ids(batch, input, where)
  check_keys(input, IDS, where)
  local model, ids, types = batch.model, input.ids, input.types
  for name, list in pairs(input) do
    if type(list) ~= "table" and not tensor.is(list) then
      fail(where, "%s is %s, expected a list of integers", name, pgee.describe(list))
    elseif type(list) == "table" then
      options.list(list, where .. ": " .. name .. ": expected a list of integers")
    end
  end
  if batch.prompt then
    fail(where, "a prompt goes before a text, but the input is ids; expected a text, or prompt = false")
  elseif #ids < 1 or #ids > model.positions then
    fail(where, "ids has %d tokens, expected 1 to %d", #ids, model.positions)
  elseif types and #types ~= #ids then
    fail(where, "types has %d entries, ids has %d", #types, #ids)
  end
  check_integers(ids, "ids", model.vocabulary, where)
  check_integers(types or {}, "types", model.types, where)
  batch:reserve(#ids)
  for i = 1, #ids do
    batch.ids[batch.T + i - 1] = tonumber(ids[i])
    batch.types[batch.T + i - 1] = types and tonumber(types[i]) or 0
  end
  batch:finish(#ids)
end

-- The names of the forms in errors.
local NAMES = {
  text = "a text", pair = "a pair of texts { a, b }", ids = "{ ids = { ... } }", words = "{ words = { ... } }",
  question = "{ question =, context = }",
}

-- The form of a value that stands alone, not as an entry of a list; nil if it is no input.
local function form_alone(input)
  if type(input) == "string" then
    return "text"
  elseif type(input) ~= "table" then
    return nil
  end
  return input.ids ~= nil and "ids" or (input.question ~= nil or input.context ~= nil) and "question"
    or input.words ~= nil and "words" or nil
end

local function form_of(input)
  local pair = type(input) == "table" and #input == 2 and type(input[1]) == "string" and type(input[2]) == "string"
  return form_alone(input) or pair and "pair" or nil
end

local ALL = { "text", "pair", "ids", "question", "words" }

-- The forms that are expected, in words. more: what else is taken, in words, or nil. If `more` is given, the value stands alone,
-- and then it cannot be a pair: a table of two texts is a list of two inputs.
local function expected(forms, more)
  local names = {}
  for _, form in ipairs(forms) do
    names[#names + 1] = not (more and form == "pair") and NAMES[form] or nil
  end
  names[#names + 1] = more
  local last = table.remove(names)
  return #names == 0 and last or table.concat(names, ", ") .. (#names > 1 and "," or "") .. " or " .. last
end

---- Batches -----------------------------------------------------------------------------------------------------------

--- Adds one input. where: what errors call the input, default "input N". forms: the forms that are taken, default all.
function Batch:add(input, where, forms)
  where = where or ("input %d"):format(self.count + 1)
  local form = form_of(input)
  local taken = form and (forms == nil)
  for _, name in ipairs(forms or {}) do
    taken = taken or name == form
  end
  if not taken then
    error(("%s is %s, expected %s"):format(where, form and NAMES[form] or pgee.describe(input), expected(forms or ALL)), 0)
  end
  self.count = self.count + 1
  add[form](self, input, where)
end

local inputs = {}

--- The options that every task has, for options.read: how long texts are treated.
inputs.OPTIONS = {
  long = {
    "choice", Batch.LONG, help = "What happens to a text that is too long. Default: truncate; of qa windows",
  },
  truncation_side = {
    "choice", Batch.SIDES,
    help = "Side on which a long text is cut off: its end is on the right. Default: as the tokenizer's files say",
  },
  tokens = { "integer", 2, help = "Max tokens of a sequence. Default: the model's limit; of qa 384" },
  stride = {
    "integer", 0, help = "Tokens that two neighbouring windows share. Default: 128, but at most a quarter of the tokens",
  },
}

--- Adds the options that every task has to a task's own options, and returns that table.
function inputs.options(own)
  for name, entry in pairs(inputs.OPTIONS) do
    own[name] = own[name] or entry
  end
  return own
end

--- The default of the option `long` for a task that takes these forms: "windows" if the first form is "question", else
-- "truncate".
function inputs.default_long(forms)
  return forms and forms[1] == "question" and "windows" or "truncate"
end

--- Adds the user's options for long texts to `how`, the options of a batch (run/batch.lua), and returns it. If `stride` is
-- given but texts are not cut into windows, that is an error.
function inputs.how(read, how, task)
  local long = read.long or inputs.default_long(how.forms)
  if read.stride and long ~= "windows" then
    error(('%s: stride is how many tokens two windows share, but long is "%s"; give long = "windows", or no stride'):format(task,
      long), 0)
  end
  for name in pairs(inputs.OPTIONS) do
    how[name] = read[name]
  end
  return how
end

--- new(model, opts): an empty batch for a model. opts: see run/batch.lua.
inputs.new = Batch.new

--- Makes one batch of one input or of a list of inputs. what: the task's name, with which errors begin. opts: the options of
-- run/batch.lua; forms: the forms that are taken, default all; name(i): what errors call input i of a list.
function inputs.batch(model, given, what, opts)
  local ok, batch = pcall(Batch.new, model, opts)
  if not ok then
    error(("%s: %s"):format(what, batch), 0)
  end
  local forms = opts and opts.forms
  if form_alone(given) then
    batch.single = true
    batch:add(given, what, forms)
    return batch
  end
  if type(given) ~= "table" then
    error(("%s: expected %s; got %s"):format(what, expected(forms or ALL, "a list of inputs"), pgee.describe(given)), 0)
  end
  options.list(given, what .. ": expected a list of inputs")
  for i = 1, #given do
    batch:add(given[i], opts and opts.name and opts.name(i) or ("%s: input %d"):format(what, i), forms)
  end
  return batch
end

return inputs
