--- Protocol buffers: a reader of the wire format, as far as SentencePiece's models need it.
--
--   local r = protobuf.reader(path, text)
--   protobuf.each(r, { [1] = { "pieces", PIECE } }, r.stop, function(field, stop) ... end)
--
-- A message is described by a table from field numbers to { name, kind }. A kind is one of protobuf.INT, BOOL, FLOAT, TEXT, or
-- the description of a message. Fields that a description does not have are skipped. A text that is cut short, or has a field of
-- another wire type than its kind, is an error that names the file and the byte.
local bit = require "bit"
local ffi = require "ffi"
local foreign = require "perigee.base.foreign"
local pgee = require "perigee.ffi"
local fail = require("perigee.tokenizer.read").fail
local band, bor, lshift, rshift = bit.band, bit.bor, bit.lshift, bit.rshift

local VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5 -- wire types

local protobuf = { INT = "an int", BOOL = "a bool", FLOAT = "a number", TEXT = "a string" }

-- The wire type of each kind; that of a message is BYTES.
local WIRE = {
  [protobuf.INT] = VARINT, [protobuf.BOOL] = VARINT, [protobuf.FLOAT] = FIXED32, [protobuf.TEXT] = BYTES,
}

--- A reader of a file's text: the next byte is s[at], the last one s[stop - 1].
function protobuf.reader(path, text)
  return { path = path, text = text, s = ffi.cast("const uint8_t *", text), at = 0, stop = #text } -- text: keeps s valid
end

local function malformed(r, ...)
  fail("'%s': byte %d: %s%s", r.path, r.at, string.format(...), foreign.hint(r.path))
end

local function truncated(r)
  malformed(r, "the file is cut short, or is no SentencePiece model")
end

-- The low 32 bits of a number, signed; and whether the number has more bits than these.
local function varint(r)
  local s, low, more = r.s, 0, false
  for i = 0, 9 do
    if r.at >= r.stop then
      truncated(r)
    end
    local byte = s[r.at]
    r.at = r.at + 1
    local value = band(byte, 127)
    if i < 5 then
      low = bor(low, lshift(value, 7 * i))
    end
    more = more or i == 4 and value > 15 or i > 4 and value > 0
    if byte < 128 then
      return low, more
    end
  end
  return malformed(r, "a number of more than 10 bytes; expected a SentencePiece model")
end

-- Moves r.at behind the next `count` bytes, and returns where these begin. more: whether the count had more than 32 bits.
local function take(r, count, more)
  if more or count < 0 or count > r.stop - r.at then
    truncated(r)
  end
  r.at = r.at + count
  return r.at - count
end

local function skip(r, wire)
  if wire == VARINT then
    varint(r)
  elseif wire == FIXED64 then
    take(r, 8)
  elseif wire == FIXED32 then
    take(r, 4)
  elseif wire == BYTES then
    take(r, varint(r))
  else
    malformed(r, "a field of wire type %d; expected a SentencePiece model", wire)
  end
end

--- The value at r.at, of a kind that is not a message.
function protobuf.value(r, kind)
  if kind == protobuf.FLOAT then
    return pgee.number(r.s + take(r, 4), pgee.C.PGEE_F32)
  elseif kind == protobuf.TEXT then
    local count, more = varint(r)
    return ffi.string(r.s + take(r, count, more), count)
  end
  local low, more = varint(r)
  if kind == protobuf.BOOL then
    return low ~= 0 or more
  end
  return low
end

--- Calls found(field, stop) for each field up to the byte `stop` that the description `message` has, with r.at at the field's
-- value. found must move r.at behind the value. Its arguments: field is { name, kind }; stop is the end of the value if it is a
-- message, else nil.
function protobuf.each(r, message, stop, found)
  local outer = r.stop
  r.stop = stop
  while r.at < stop do
    local tag, more = varint(r)
    local field, wire = message[rshift(tag, 3)], band(tag, 7)
    if more or rshift(tag, 3) == 0 then
      malformed(r, "a field without a number; expected a SentencePiece model")
    elseif not field then
      skip(r, wire)
    elseif wire ~= (WIRE[field[2]] or BYTES) then
      fail("'%s': byte %d: '%s' has wire type %d, expected %d", r.path, r.at, field[1], wire, WIRE[field[2]] or BYTES)
    else
      local inner
      if not WIRE[field[2]] then
        local count, too_many = varint(r)
        inner = take(r, count, too_many) + count
        r.at = inner - count
      end
      found(field, inner)
    end
  end
  r.stop = outer
end

return protobuf
