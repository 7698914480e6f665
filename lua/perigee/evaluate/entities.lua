--- Entities: the spans of words that tags stand for, one tag a word: B-PER I-PER O.
--
-- The rules are those of the CoNLL evaluation, which seqeval's default follows. A span has words of one type. B- and S- begin a
-- span, and I- or E- does too if the word before it has another type. E- and S- end a span, and so does a tag of another type.
-- strict: as seqeval's strict IOB2: only B- begins a span, and an I- that continues no span is ignored.
local entities = {}

-- "B-PER" -> "B", "PER". A tag without a prefix is a type, and each run of it is a span (the scheme IO).
local function parts(tag)
  if tag == "O" or tag == "" then
    return "O", nil
  end
  local prefix, kind = tag:match "^([BIESLUM])[-_](.*)$"
  if prefix then
    return prefix, kind
  elseif tag:match "^[BIESLUM]$" then
    return tag, "_" -- chunks without types
  end
  return "I", tag
end

local OPENS, ENDS = { B = true, S = true, U = true }, { E = true, L = true, S = true, U = true }

--- The spans of a list of tags: a list of { type, first, last } with word indices from 1. strict: see above.
function entities.spans(tags, strict)
  local spans, open, last_prefix, last_kind = {}, nil, "O", nil
  local function close(at)
    if open then
      spans[#spans + 1] = { last_kind, open, at }
      open = nil
    end
  end
  for i = 1, #tags + 1 do
    local prefix, kind = "O", nil
    if tags[i] then
      prefix, kind = parts(tags[i])
    end
    local breaks = OPENS[prefix] or ENDS[last_prefix] or kind ~= last_kind
    if breaks then
      close(i - 1)
    end
    if prefix ~= "O" and not open and (OPENS[prefix] or not strict) then
      open = i
    end
    last_prefix, last_kind = prefix, kind
  end
  return spans
end

--- Counts spans: those that two lists of tags have in common, those of the first list, those of the second.
function entities.count(answered, there, strict)
  local known, right = {}, 0
  local a, t = entities.spans(answered, strict), entities.spans(there, strict)
  for _, s in ipairs(t) do
    known[s[1] .. "\0" .. s[2] .. "\0" .. s[3]] = true
  end
  for _, s in ipairs(a) do
    right = right + (known[s[1] .. "\0" .. s[2] .. "\0" .. s[3]] and 1 or 0)
  end
  return right, #a, #t
end

return entities
