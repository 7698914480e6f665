--- format: the number of the artifact format, and the check of a file's number.
--
-- The number rises with every change of what an artifact contains. A library reads only the files of its own format, because a
-- model can always be saved again from its checkpoint.
local pgee = require "perigee.ffi"
local ffi = require "ffi"

local format = {}

--- The format that this library writes and reads.
format.NUMBER = 3

-- The version of the library that wrote the file, for an error.
local function writer(file)
  return file:metadata "perigee.version" or "an unknown version"
end

--- Raises an error if an open safetensors file is not an artifact of this format. The error names neither the file nor a place.
function format.check(file)
  local found = file:metadata "perigee.format"
  if not found then
    error("it is no artifact of Perigee; a checkpoint is opened by perigee.load with the path of its folder", 0)
  end
  local number = found:match "^[1-9]%d*$" and tonumber(found)
  if not number then
    error(("its perigee.format is %q, expected a whole number such as %d"):format(found, format.NUMBER), 0)
  elseif number ~= format.NUMBER then
    local advice = number < format.NUMBER and "save the model again with this version"
      or "open it with a newer version, or save the model again with this one"
    error(("it has format %s and was written by Perigee %s; this library (%s) reads format %d only: %s"):format(found,
      writer(file), ffi.string(pgee.C.pgee_version()), format.NUMBER, advice), 0)
  end
end

return format
