--- Compares answers of question answering as SQuAD does: normalizes them, then checks whether they are equal (exact match) and
-- counts the words that they share (F1). The default rules are those of SQuAD's evaluation (Rajpurkar et al. 2016, 2018): lower
-- case, no ASCII punctuation, no articles a, an, the. With a language the rules are those of MLQA (Lewis et al. 2020): no Unicode
-- punctuation, no articles of that language, and in Chinese each ideograph is a word.
local pgee = require "perigee.ffi"
local set = require "perigee.base.set"
local bit = require "bit"
local utf8 = require "perigee.base.utf8"
local C = pgee.C

local squad = {}

local ENGLISH = set "a an the"

-- The Arabic article is a prefix; squad.words removes it, as MLQA does.
local ARTICLES = {
  en = ENGLISH,
  es = set "un una unos unas el la los las",
  de = set "ein eine einen einem eines einer der die das den dem des",
  vi = set "của là cái chiếc những",
}

---- Characters --------------------------------------------------------------------------------------------------------

-- Characters that Python's split() treats as white space and the tokenizer does not.
local SPACES = { [0x0B] = true, [0x0C] = true, [0x85] = true, [0x2028] = true, [0x2029] = true }
for c = 0x1C, 0x1F do
  SPACES[c] = true
end

local function is(c, kind)
  return bit.band(C.pgee_character_kind(c), kind) ~= 0
end

-- Calls f(code point, its text) for each character of the lower-cased text.
local function lowered(text, f)
  for char in text:gmatch "[%z\1-\127\194-\244][\128-\191]*" do
    local c = utf8.code_point(char)
    if c == 0x130 then -- the one letter whose lower case is two
      f(0x69, "i")
      f(0x307, "\204\135")
    else
      local lower = tonumber(C.pgee_character_lower(c))
      f(lower, lower == c and char or utf8.encode(lower))
    end
  end
end

---- Normalizing -------------------------------------------------------------------------------------------------------

local function punctuation(language)
  if language then
    return function(c) return is(c, C.PGEE_PUNCTUATION) end
  end
  return function(c) return c < 0x80 and is(c, C.PGEE_PUNCTUATION) end
end

-- The words of a text, without punctuation and articles. An article is a run of word characters; it may be a part of what stands
-- between two spaces, and then it splits that.
local function words_of(text, language)
  local articles = language and (ARTICLES[language] or {}) or ENGLISH
  local dropped, chinese = punctuation(language), language == "zh"
  local words, word, run = {}, {}, {}
  local function end_run()
    local piece = table.concat(run)
    run = {}
    if articles[piece] then -- a space takes its place
      words[#words + 1] = table.concat(word)
      word = {}
    else
      word[#word + 1] = piece
    end
  end
  local function end_word()
    end_run()
    words[#words + 1] = table.concat(word)
    word = {}
  end
  lowered(text, function(c, char)
    if dropped(c) then
      return
    elseif SPACES[c] or is(c, C.PGEE_SPACE) then
      end_word()
    elseif chinese and c >= 0x4E00 and c <= 0x9FA5 then
      end_word()
      words[#words + 1] = char
    elseif c == 0x5F or is(c, C.PGEE_WORD) then
      run[#run + 1] = char
    else
      end_run()
      word[#word + 1] = char
    end
  end)
  end_word()
  local kept = {}
  for _, w in ipairs(words) do
    if w ~= "" then
      kept[#kept + 1] = w
    end
  end
  return kept
end

--- The words that are compared. language: nil for SQuAD's rules, else a code such as "de" for MLQA's.
function squad.words(text, language)
  local words = words_of(text, language)
  if language == "ar" then
    local joined = table.concat(words, " "):gsub("ال", " ")
    words = {}
    for w in joined:gmatch "[^ ]+" do
      words[#words + 1] = w
    end
  end
  return words
end

---- Comparing ---------------------------------------------------------------------------------------------------------

local function f1(answer, reference)
  if #answer == 0 or #reference == 0 then
    return #answer == #reference and 1 or 0 -- no answer, as SQuAD 2.0 counts it
  end
  local left, shared = {}, 0
  for _, word in ipairs(reference) do
    left[word] = (left[word] or 0) + 1
  end
  for _, word in ipairs(answer) do
    if (left[word] or 0) > 0 then
      left[word], shared = left[word] - 1, shared + 1
    end
  end
  return 2 * shared / (#answer + #reference)
end

--- Exact match (0 or 1) and F1 of an answer: the maximum over a list of references. If the list is empty, or all references are
-- empty, the question has no answer, and the right answer is "".
function squad.compare(answer, references, language)
  local words, exact, best, some = squad.words(answer, language), 0, 0, false
  local text = table.concat(words, " ")
  local function against(reference)
    exact = math.max(exact, text == table.concat(reference, " ") and 1 or 0)
    best = math.max(best, f1(words, reference))
  end
  for _, reference in ipairs(references) do
    local of = squad.words(reference, language)
    if #of > 0 then
      some = true
      against(of)
    end
  end
  if not some then
    against {}
  end
  return exact, best
end

return squad
