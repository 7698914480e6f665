--- failure(f, ...) returns the message of the error that f(...) raises. If f raises none, the spec fails.
return function(f, ...)
  local ok, message = pcall(f, ...)
  assert(not ok, "there was no error")
  return message
end
