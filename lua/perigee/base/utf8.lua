--- UTF-8: where a text is not UTF-8, its characters, and code points.
--
--   utf8.malformed "a\255"          --> 2, the first byte that is not UTF-8; nil if all bytes are
--   utf8.repair "a\255"             --> "a\239\191\189", with U+FFFD in the place of that byte
--   utf8.at("aé", 2)                --> "é", the character that begins at byte 2
--   utf8.encode(0xE9)               --> "é"
--   utf8.code_point "é"             --> 0xE9
local byte = string.byte

local utf8 = {}

-- RFC 3629's table. By the first byte of a character: how many bytes follow, and the range of the first that follows.
local function lead(b)
  if b >= 0xC2 and b <= 0xDF then return 1, 0x80, 0xBF end
  if b == 0xE0 then return 2, 0xA0, 0xBF end
  if b == 0xED then return 2, 0x80, 0x9F end
  if b >= 0xE1 and b <= 0xEF then return 2, 0x80, 0xBF end
  if b == 0xF0 then return 3, 0x90, 0xBF end
  if b >= 0xF1 and b <= 0xF3 then return 3, 0x80, 0xBF end
  if b == 0xF4 then return 3, 0x80, 0x8F end
end

-- The number of bytes of the character that begins at i; nil if no character begins there.
local function size_at(text, i)
  local b = byte(text, i)
  if b < 0x80 then
    return 1
  end
  local count, low, high = lead(b)
  for k = 1, count or 0 do
    local c = byte(text, i + k) or 0
    if c < (k == 1 and low or 0x80) or c > (k == 1 and high or 0xBF) then
      return nil
    end
  end
  return count and count + 1
end

--- The position of the first byte that is not UTF-8; nil if all bytes are. from: the position of a character's first byte, where
-- the check begins.
function utf8.malformed(text, from)
  local i = text:find("[\128-\255]", from)
  while i and i <= #text do
    local size = size_at(text, i)
    if not size then
      return i
    end
    i = i + size
  end
end

--- The text with `mark` in the place of each byte that is not UTF-8. Default: U+FFFD.
function utf8.repair(text, mark)
  local parts, from, bad = {}, 1, utf8.malformed(text)
  while bad do
    parts[#parts + 1] = text:sub(from, bad - 1)
    from = bad + 1
    bad = utf8.malformed(text, from)
  end
  parts[#parts + 1] = text:sub(from)
  return table.concat(parts, mark or "\239\191\189")
end

--- The character that begins at byte i; the byte alone if it is not UTF-8.
function utf8.at(text, i)
  return text:sub(i, i + (size_at(text, i) or 1) - 1)
end

--- The character of a code point.
function utf8.encode(code)
  if code < 0x80 then
    return string.char(code)
  elseif code < 0x800 then
    return string.char(0xC0 + math.floor(code / 64), 0x80 + code % 64)
  elseif code < 0x10000 then
    return string.char(0xE0 + math.floor(code / 4096), 0x80 + math.floor(code / 64) % 64, 0x80 + code % 64)
  end
  return string.char(0xF0 + math.floor(code / 262144), 0x80 + math.floor(code / 4096) % 64, 0x80 + math.floor(code / 64) % 64,
    0x80 + code % 64)
end

--- The code point of a character, as utf8.at returns it. A byte that is not UTF-8 gives the byte's value.
function utf8.code_point(character)
  local a, b, c, d = byte(character, 1, 4)
  if not b then
    return a
  elseif not c then
    return (a - 0xC0) * 64 + b - 0x80
  elseif not d then
    return (a - 0xE0) * 4096 + (b - 0x80) * 64 + c - 0x80
  end
  return (a - 0xF0) * 262144 + (b - 0x80) * 4096 + (c - 0x80) * 64 + d - 0x80
end

return utf8
