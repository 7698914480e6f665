local ffi = require "ffi"
local C = require("perigee.ffi").C

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end

describe("version", function()
  it("is that of perigee.h", function()
    assert.equal(read("engine/perigee.h"):match '#define PGEE_VERSION "(%d+%.%d+%.%d+)"', ffi.string(C.pgee_version()))
  end)

  it("carries perigee.h without its # lines and without what is for C++ alone", function()
    local lines = {}
    local text = read("engine/perigee.h"):gsub("\n#ifdef __cplusplus\n.-\n#endif\n", "\n")
    for line in text:gmatch "([^\n]*)\n" do
      if line:sub(1, 1) ~= "#" then
        lines[#lines + 1] = line .. "\n"
      end
    end
    assert.is_true(#lines > 100)
    assert.equal(table.concat(lines), ffi.string(C.pgee_header()))
  end)
end)
