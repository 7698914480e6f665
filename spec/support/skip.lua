--- skip(reason) returns a function to use in the place of `it`, where tests cannot run. Each test counts as skipped for this
-- reason.
--
--   local it = hard and skip "too slow under sanitizers" or it
return function(reason)
  local busted = getfenv(2) -- the environment that busted gives to specs
  return function(name)
    busted.it(name, function() busted.pending(reason) end)
  end
end
