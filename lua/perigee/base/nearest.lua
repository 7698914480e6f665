--- Nearest: the known word closest to a misspelt one, for errors that ask "did you mean ...?".
local nearest = {}

local function distance(a, b)
  local row = {}
  for j = 0, #b do
    row[j] = j
  end
  for i = 1, #a do
    local diagonal = row[0]
    row[0] = i
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      diagonal, row[j] = row[j], math.min(row[j] + 1, row[j - 1] + 1, diagonal + cost)
    end
  end
  return row[#b]
end

--- The word of the list that needs the fewest letters added, dropped or replaced to become `word`; nil if every word of the list
-- needs more than two such changes and more than a third of the letters of `word`.
function nearest.word(word, list)
  local best, least = nil, math.max(2, math.floor(#word / 3)) + 1
  for _, candidate in ipairs(list) do
    local d = math.abs(#word - #candidate) < least and distance(word, candidate) or least
    if d < least then
      best, least = candidate, d
    end
  end
  return best
end

--- The end of an error about a word that is not in the list: ' (did you mean "alpha"?)', or "" if no word is near.
function nearest.hint(word, list)
  local near = type(word) == "string" and type(list[1]) == "string" and nearest.word(word, list)
  return near and (" (did you mean %q?)"):format(near) or ""
end

return nearest
