--- Live: bytes that the library holds once all that nothing can reach is collected.
local pgee = require "perigee.ffi"

return function()
  jit.flush() -- compiled traces keep objects that they were recorded with
  collectgarbage()
  collectgarbage() -- what the finalizers of the first released
  return tonumber(pgee.C.pgee_live_bytes())
end
