--- Foreign files: recognizes, by its first bytes, a file of a kind that Perigee does not read, and says what the user can do.
--
--   foreign.hint(path)   -- "; it is a pointer of Git LFS, not the file itself: run `git lfs pull` in the folder"
local system = require "perigee.os"

local M = {}

--- How weights of other libraries become a safetensors file.
M.TO_SAFETENSORS = "load the model with transformers and save it with save_pretrained, which writes model.safetensors"

-- Kinds of files: a pattern for the first bytes, a name, and what the user can do. The first pattern that matches counts.
local KINDS = {
  { "^version https://git%-lfs", "a pointer of Git LFS, not the file itself", "run `git lfs pull` in the folder" },
  { "^%s*<[!%?%a]", "an HTML or XML page", "download the file itself: the server sent a page instead, perhaps to log in" },
  { "^GGUF", "a GGUF file", "take the checkpoint that it was made from" },
  { "^PK\3\4", "a ZIP archive, as PyTorch writes", "PyTorch's weights have to be converted: " .. M.TO_SAFETENSORS },
  { "^\128[\2-\5]", "a pickle of Python", "PyTorch's weights have to be converted: " .. M.TO_SAFETENSORS },
  { "^\137HDF\r\n", "an HDF5 file, as TensorFlow writes", M.TO_SAFETENSORS .. " (from_tf=True)" },
  { "^\8[\1-\15][\18\26]", "an ONNX model", "take the checkpoint that it was made from" },
  { "^\31\139", "a gzip archive", "unpack it" },
}

-- The first bytes of a file, "" if it is empty; nil if it cannot be read.
local function beginning(path)
  local found = system.stat(path)
  local file = found and found.regular and io.open(path, "rb") -- opening a pipe could wait for ever
  if not file then
    return nil
  end
  local bytes, why = file:read(256)
  file:close()
  return bytes or not why and "" or nil
end

--- For a file that could not be read as expected: the kind of file it is and what the user can do, as the end of a sentence. ""
-- if its first bytes match no known kind. said: the sentence so far. If the sentence says that the file is empty, the hint does
-- not repeat that.
function M.hint(path, said)
  local bytes = beginning(path)
  if bytes == "" then
    return (said and said:find "is empty$" and "" or "; it is empty") .. ": download it again"
  end
  for _, kind in ipairs(KINDS) do
    if bytes and bytes:find(kind[1]) then
      return ("; it is %s: %s"):format(kind[2], kind[3])
    end
  end
  return ""
end

return M
