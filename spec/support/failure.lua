--- failure(f, ...): the message of the error that f(...) raises; that it raises none fails the spec.
return function(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "there was no error")
  return message
end
