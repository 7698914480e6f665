local lines = require "perigee.base.lines"

local function all(content)
  local path = os.tmpname()
  local file = assert(io.open(path, "wb"))
  file:write(content)
  file:close()
  local list = {}
  for line in lines(path) do
    list[#list + 1] = line
  end
  os.remove(path)
  return list
end

describe("lines", function()
  it("end with LF or CR LF, the last one also with the file", function()
    assert.are.same({ "a", "", "b\rc", "d" }, all "a\n\r\nb\rc\nd")
    assert.are.same({ "a" }, all "a\n")
    assert.are.same({}, all "")
    assert.are.same({ "" }, all "\n")
  end)

  it("keep zero bytes, drop one byte order mark", function()
    assert.are.same({ "a\0b", "\239\187\191" }, all "\239\187\191a\0b\n\239\187\191\n")
  end)

  it("may be longer than a block, and cross its end anywhere", function()
    for _, n in ipairs { 65534, 65535, 65536, 65537, 200000 } do
      local line = ("x"):rep(n)
      assert.are.same({ line, "y" }, all(line .. "\r\ny\n"))
    end
  end)

  it("have at most 16 MiB", function()
    assert.are.equal(2 ^ 24, #all(("x"):rep(2 ^ 24) .. "\n")[1])
    assert.error_matches(function() all(("x"):rep(2 ^ 24 + 2 ^ 17)) end, "has a line of more than 16777216 bytes")
  end)

  it("of a path that is not there, or that is no file, are an error", function()
    assert.error_matches(function() lines "/nowhere/at/all.txt" end, "lines: cannot open '/nowhere/at/all.txt': No such file")
    assert.error_matches(function() lines "/tmp" end, "lines: cannot read '/tmp': it is a directory, expected a file or a pipe")
    assert.error_matches(function() lines "/dev/zero" end, "cannot read '/dev/zero': it is a character device, expected a file")
    assert.error_matches(function() lines(7) end, "expected the path of a file, got 7")
  end)
end)
