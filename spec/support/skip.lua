--- skip(reason): stands in for `it` where tests cannot run. Each of them counts as skipped for that reason.
--
--   local it = hard and skip "too slow under sanitizers" or it
return function(reason)
  local busted = getfenv(2) -- what busted gives to specs, as globals
  return function(name)
    busted.it(name, function() busted.pending(reason) end)
  end
end
