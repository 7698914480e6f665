--- Tokenizers: WordPiece, Unigram and byte pair encoding as a checkpoint defines them, with the same ids as transformers.
--
--   local tokenizer = require "perigee.tokenizer"
--   local t = tokenizer.load "path/to/checkpoint"
--   local e = t:encode("A text", "its pair", { max_tokens = 128 })
--   e.ids, e.types              -- { 101, 1037, 3793, 102, ... }, { 0, 0, 0, 0, 1, ... }
--   e.offsets[2]                -- { 0, 1 }: the second token stands for text:sub(0 + 1, 1)
--   e.sequences, e.words        -- which text a token belongs to (0: special tokens), and which word of it (from 1)
--   e.dropped                   -- how many tokens max_tokens cut off
--   t:encode_words { "Already", "cut" }
--   t:decode(e.ids)             -- "a text its pair"
--   t:piece(1037), t:id "text"  -- "a", 3793
--   t.size, t.cls, t.sep, t.unk, t.pad, t.mask, t.model, t.prefix, t.truncation_side
--   tokenizer.from_image(t:image())   -- the same tokenizer, which runs from these bytes
--
-- The files are read as AutoTokenizer of transformers 5 reads them (tokenizer/classes.lua): tokenizer.json, or vocab.txt, or
-- vocab.json and merges.txt, or a SentencePiece model, and tokenizer_config.json and its companions. A component that is not
-- supported is an error that names it.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local options = require "perigee.options"
local tensor = require "perigee.tensor"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local Tokenizer = {}
Tokenizer.__index = Tokenizer

local handles = pgee.class("tokenizer", "pgee_tokenizer", "pgee_tokenizer_free", {})
local out, count = pgee.out "pgee_tokenizer *", pgee.out "int64_t"
local int32s, int64s, bytes_of = ffi.typeof "int32_t[?]", ffi.typeof "int64_t[?]", ffi.typeof "char[?]"
local NO_LIMIT = 2 ^ 31 - 1
local MODELS = { [C.PGEE_WORDPIECE] = "WordPiece", [C.PGEE_UNIGRAM] = "Unigram", [C.PGEE_BPE] = "BPE" }

-- ---- Making one -----------------------------------------------------------------------------------------------------------

local function wrap(handle)
  local specials = int32s(5)
  check(C.pgee_tokenizer_specials(handle.handle, specials))
  local t = { handle = handle, size = tonumber(C.pgee_tokenizer_size(handle.handle)) }
  t.model = MODELS[tonumber(C.pgee_tokenizer_model(handle.handle))]
  local prefix = ffi.string(C.pgee_tokenizer_prefix(handle.handle))
  t.prefix = prefix ~= "" and prefix or nil
  t.truncation_side = C.pgee_tokenizer_left(handle.handle) ~= 0 and "left" or "right"
  for i, key in ipairs { "unk", "cls", "sep", "pad", "mask" } do
    t[key] = specials[i - 1] >= 0 and specials[i - 1] or nil
  end
  return setmetatable(t, Tokenizer)
end

local function load(from)
  if type(from) ~= "string" and (type(from) ~= "table" or not from.tokenizer_files) then
    error(("load: argument 1 is %s, expected a checkpoint or the path of its folder"):format(pgee.describe(from)))
  end
  -- Loaded here, because a tokenizer from an image does not need them.
  local c = type(from) == "string" and require("perigee.checkpoint").tokenizer(from) or from
  local file, path, special, cut = require("perigee.tokenizer.files").read(c)
  local d = require("perigee.tokenizer.definition").of(file, path, special, cut)
  local status = C.pgee_tokenizer_new(out, d)
  if status ~= C.PGEE_OK then
    error(("'%s': %s"):format(path, ffi.string(C.pgee_message())), 0)
  end
  return wrap(handles.wrap(out[0]))
end

--- The tokenizer of a checkpoint. from: what perigee.checkpoint.open returned, or the path of a folder, which may lack a model.
-- Errors: the folder has no file of a tokenizer; a component is not supported; a vocab.txt lacks [UNK], [CLS] or [SEP]. If the
-- vocabulary lacks another special token, t.pad, t.mask and so on are nil.
function M.load(from)
  local t = pgee.raise(load, from)
  return t
end

--- A tokenizer that runs from the bytes of an image, a U8 tensor from t:image(). It keeps the tensor alive and copies nothing.
-- Errors: the bytes are not an image, or an image of another version.
function M.from_image(image)
  if not tensor.is(image) then
    error(("from_image: argument 1 is %s, expected a tensor"):format(pgee.describe(image)))
  end
  check(C.pgee_tokenizer_from_image(out, tensor.handle(image)))
  return wrap(handles.wrap(out[0]))
end

-- ---- Encoding -------------------------------------------------------------------------------------------------------------

local function handle_of(t)
  if getmetatable(t) ~= Tokenizer then
    error(("the tokenizer is %s, expected what tokenizer.load returns: call its methods with a colon"):format(pgee.describe(t)))
  end
  return handles.handle(t.handle, "tokenizer")
end

local function check_text(value, position, name)
  if type(value) ~= "string" then
    error(("%s: argument %d is %s, expected a string"):format(name, position, pgee.describe(value)))
  end
end

local encoding = ffi.new "pgee_encoding"

local text_a, text_b = ffi.new "pgee_text", ffi.new "pgee_text"
local cut = ffi.new "pgee_encode_options"
local SIDES = { right = C.PGEE_SIDE_RIGHT, left = C.PGEE_SIDE_LEFT }

--- For modules of perigee: encodes into the caller's int32 arrays: ids [limit], types [limit], and offsets [limit][2] unless nil.
-- side: the side of a long text that is cut off, "left" or "right"; nil: as the tokenizer's files say. Returns the number of
-- tokens, and the number of tokens that were dropped.
function Tokenizer:encode_into(ids, types, limit, a, b, offsets, side)
  check_text(a, 4, "encode_into")
  if type(b) ~= "nil" then
    check_text(b, 5, "encode_into")
  end
  if type(limit) ~= "number" or limit % 1 ~= 0 or limit < 0 or limit > NO_LIMIT then
    error(("encode_into: limit is %s, expected an integer of at least 0"):format(pgee.describe(limit)))
  end
  pgee.check_int32s(ids, "encode_into: ids", limit)
  pgee.check_int32s(types, "encode_into: types", limit)
  if offsets ~= nil then
    pgee.check_int32s(offsets, "encode_into: offsets", 2 * limit)
  end
  encoding.ids, encoding.types, encoding.offsets, encoding.capacity = ids, types, offsets, limit
  encoding.sequences, encoding.words = nil, nil
  local handle = handle_of(self)
  cut.max_tokens, cut.side = limit, SIDES[side] or C.PGEE_SIDE_DEFAULT
  text_a.bytes, text_a.count, text_b.bytes, text_b.count = a, #a, b, b and #b or 0
  check(C.pgee_tokenizer_encode_texts(handle, encoding, text_a, b and text_b or nil, cut))
  return tonumber(encoding.length), tonumber(encoding.dropped)
end

local KNOWN = { max_tokens = true, special = true, offsets = true, truncate = true, truncation_side = true }
local TRUNCATE = { longest = C.PGEE_TRUNCATE_LONGEST, first = C.PGEE_TRUNCATE_FIRST, second = C.PGEE_TRUNCATE_SECOND }
local OFFSETS = { bytes = 0, characters = 1 }

-- The options as C takes them.
local function read_options(opts, name)
  opts = options.check(opts, KNOWN, name)
  local limit = opts.max_tokens
  if type(limit) ~= "nil" and (type(limit) ~= "number" or limit % 1 ~= 0 or limit < 0 or limit > NO_LIMIT) then
    error(("%s: max_tokens is %s, expected an integer"):format(name, pgee.describe(limit)))
  elseif opts.special ~= nil and type(opts.special) ~= "boolean" then
    error(("%s: special is %s, expected true or false"):format(name, pgee.describe(opts.special)))
  end
  local truncate = options.choice(opts.truncate or "longest", TRUNCATE, name .. ": truncate")
  local side = opts.truncation_side and options.choice(opts.truncation_side, SIDES, name .. ": truncation_side")
  local offsets = options.choice(opts.offsets or "bytes", OFFSETS, name .. ": offsets")
  return ffi.new("pgee_encode_options", {
    max_tokens = limit or NO_LIMIT, truncate = TRUNCATE[truncate], bare = opts.special == false and 1 or 0,
    characters = OFFSETS[offsets], side = SIDES[side] or C.PGEE_SIDE_DEFAULT,
  })
end

local function new_arrays(capacity)
  local a = { capacity = capacity, block = int32s(6 * capacity + 1) }
  a.ids, a.types, a.sequences, a.words = a.block, a.block + capacity, a.block + 2 * capacity, a.block + 3 * capacity
  a.offsets = a.block + 4 * capacity
  return a
end

-- Encodes one or two pgee_texts (second: nil for one) into new arrays. If the first arrays are too small, C says the length that
-- is needed, and the second round has arrays of that length.
local function encode(t, first, second, o)
  local bytes = tonumber(first.count) + (second and tonumber(second.count) or 0)
  local capacity = bytes + tonumber(C.pgee_tokenizer_special_count(handle_of(t), second and 1 or 0)) + 2
  local arrays = new_arrays(math.min(capacity, tonumber(o.max_tokens)))
  for _ = 1, 2 do
    encoding.ids, encoding.types, encoding.offsets, encoding.capacity = arrays.ids, arrays.types, arrays.offsets, arrays.capacity
    encoding.sequences, encoding.words, encoding.length = arrays.sequences, arrays.words, 0
    local status = C.pgee_tokenizer_encode_texts(t.handle.handle, encoding, first, second, o)
    if status == C.PGEE_OK then
      return arrays, tonumber(encoding.length), tonumber(encoding.dropped)
    elseif encoding.length <= arrays.capacity then
      check(status)
    end
    arrays = new_arrays(tonumber(encoding.length))
  end
end

local function lists(arrays, length, dropped)
  local e = { ids = {}, types = {}, offsets = {}, sequences = {}, words = {}, dropped = dropped }
  for i = 1, length do
    e.ids[i], e.types[i], e.sequences[i] = arrays.ids[i - 1], arrays.types[i - 1], arrays.sequences[i - 1]
    e.offsets[i] = { arrays.offsets[2 * i - 2], arrays.offsets[2 * i - 1] }
    if arrays.words[i - 1] >= 0 then
      e.words[i] = arrays.words[i - 1] + 1
    end
  end
  return e
end

local function text_struct(text)
  return pgee.hold(ffi.new("pgee_text", { bytes = text, count = #text }), text)
end

--- Encodes a text, or a pair of texts, with the special tokens around them. Options:
--   max_tokens  the maximum number of tokens, special tokens included; default: no limit
--   truncate    the text that tokens are dropped from: "longest" (default; the longer text until both are equal, then both, as in
--               transformers), "first" or "second": an error if nothing of it would be left
--   truncation_side   the side of a text that tokens are dropped from: "right" (its end) or "left" (its beginning). Default:
--               t.truncation_side, which the tokenizer's files say
--   special     false: no special tokens are added
--   offsets     "bytes" (the default) or "characters"
-- Returns a table of lists that have one entry a token. A special token that the tokenizer adds has offsets 0, 0, sequence 0
-- and no word.
--   ids, types
--   offsets     { begin, end } in the token's text, from 0, end excluded
--   sequences   1 or 2: the text that the token belongs to
--   words       the index (from 1) of the token's word, as pre-tokenizing cut the text
-- Its field `dropped` is the number of tokens that were cut off.
function Tokenizer:encode(text, pair, opts)
  check_text(text, 1, "encode")
  if type(pair) ~= "nil" then
    check_text(pair, 2, "encode")
  end
  local o = read_options(opts, "encode")
  local first, second = text_struct(text), pair and text_struct(pair)
  return (lists(encode(self, first, second, o)))
end

--- Encodes a text that is given as a list of words. Each word is encoded alone, as transformers does with is_split_into_words.
-- Options and result are those of encode, with two differences: `words` has indices into the list, and offsets count from the
-- beginning of the word.
function Tokenizer:encode_words(words, opts)
  if type(words) ~= "table" then
    error(("encode_words: argument 1 is %s, expected a list of strings"):format(pgee.describe(words)))
  end
  local ends, size = int64s(#words + 1), 0
  for i, word in ipairs(words) do
    if type(word) ~= "string" then
      error(("encode_words: word %d is %s, expected a string"):format(i, pgee.describe(word)))
    end
    size = size + #word
    ends[i - 1] = size
  end
  local o, text = read_options(opts, "encode_words"), table.concat(words)
  local first = pgee.hold(ffi.new("pgee_text", { bytes = text, count = #text, word_ends = ends, words = #words }), text, ends)
  return (lists(encode(self, first, nil, o)))
end

--- The number of special tokens that are added to one text or, if pair is true, to a pair.
function Tokenizer:special_count(pair)
  return tonumber(C.pgee_tokenizer_special_count(handle_of(self), pair and 1 or 0))
end

-- ---- Pieces and texts -----------------------------------------------------------------------------------------------------

--- The piece or added token with that id; nil if there is none. An added token that is looked for in normalized text is returned
-- normalized, as tokenizers does.
function Tokenizer:piece(id)
  local text = type(id) == "number" and C.pgee_tokenizer_piece(handle_of(self), id, count) or nil
  return text ~= nil and ffi.string(text, tonumber(count[0])) or nil
end

--- The id of a piece or added token; nil if there is none.
function Tokenizer:id(piece)
  local id = type(piece) == "string" and C.pgee_tokenizer_id(handle_of(self), piece, #piece) or -1
  return id >= 0 and id or nil
end

local function array_of(ids)
  if type(ids) == "cdata" then
    local bytes = ffi.sizeof(ids) or 0
    pgee.check_int32s(ids, "decode: argument 1", 0)
    return ids, bytes / 4
  elseif type(ids) ~= "table" then
    error(("decode: argument 1 is %s, expected a list of ids"):format(pgee.describe(ids)))
  end
  local array = int32s(#ids + 1)
  for i, id in ipairs(ids) do
    if type(id) ~= "number" or id % 1 ~= 0 or id < 0 or id > NO_LIMIT then
      error(("decode: id %d is %s, which the vocabulary does not have"):format(i, pgee.describe(id)))
    end
    array[i - 1] = id
  end
  return array, #ids
end

--- The text of a list (or int32 array) of ids, without special tokens unless opts.special is true. Normalizing cannot be undone:
-- the text of a lowercasing tokenizer is lower case.
function Tokenizer:decode(ids, opts)
  local array, n = array_of(ids)
  local special = options.check(opts, { special = true }, "decode").special and 1 or 0
  local handle, room = handle_of(self), 8 * n + 64
  for _ = 1, 2 do
    local buffer = bytes_of(room)
    local status = C.pgee_tokenizer_decode(handle, array, n, special, buffer, room, count)
    if status ~= C.PGEE_OK then
      error("decode: " .. ffi.string(C.pgee_message()), pgee.blame())
    elseif count[0] <= room then
      return ffi.string(buffer, tonumber(count[0]))
    end
    room = tonumber(count[0])
  end
end

-- ---- The object -----------------------------------------------------------------------------------------------------------

local tensor_out = pgee.out "pgee_tensor *"

--- The memory from which the tokenizer runs, as a U8 tensor, to save and to give to from_image. Equal files give equal bytes.
function Tokenizer:image()
  check(C.pgee_tokenizer_image(tensor_out, handle_of(self)))
  return tensor.wrap(tensor_out[0])
end

--- Frees the tokenizer's memory in C. A second call has no effect.
function Tokenizer:release()
  pgee.raise(options.self, self, Tokenizer, "release", "a tokenizer")
  handles.release(self.handle)
end

function Tokenizer:__tostring()
  return ("tokenizer %s, %d pieces"):format(self.model, self.size)
end

return M
