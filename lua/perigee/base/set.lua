--- Set: the words of a text as a set.
--
--   set "a b"   --> { a = true, b = true }
return function(text)
  local words = {}
  for word in text:gmatch "%S+" do
    words[word] = true
  end
  return words
end
