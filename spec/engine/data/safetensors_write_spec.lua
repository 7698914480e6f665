-- engine/safetensors_write.c, checksum.c and file.c: what is written, what is noticed of damage, what becomes of a file that was
-- there.
local bit = require "bit"
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"
local live = require "spec.support.live"
local models = require "spec.support.models"
local safetensors = require "perigee.safetensors"
local tensor = require "perigee.tensor"

-- CRC-32, bit by bit.
local function crc32(bytes)
  local r = bit.bnot(0)
  for i = 1, #bytes do
    r = bit.bxor(r, bytes:byte(i))
    for _ = 1, 8 do
      r = bit.bxor(bit.rshift(r, 1), bit.band(-bit.band(r, 1), 0xedb88320))
    end
  end
  return tonumber(ffi.cast("uint32_t", bit.bnot(r)))
end

local function written(tensors, metadata)
  local folder = files.folder {}
  local path = folder .. "/f.safetensors"
  safetensors.write(path, tensors, metadata)
  return path, folder
end

local function word(bytes, i)
  return tonumber(ffi.cast("const uint32_t *", ffi.cast("const char *", bytes) + 4 * i)[0])
end

local function some()
  local padded = tensor.new("U8", { 2, 3 }) -- rows of 64 bytes
  padded[1], padded[2] = { 1, 2, 3 }, { 4, 5, 6 }
  return {
    ["layer.b"] = tensor.from { { 1, 2 }, { 3, 4 } }, ["layer.a"] = tensor.from({ 5, -6, 7 }, "I8"), u = padded,
    empty = tensor.new("F32", { 0, 4 }), ["\"quoted\\\1\""] = tensor.from { 1 }, wide = tensor.new("F32", 100),
  }, { second = "2", first = 'a "text"\n\\ and \1, ü' }
end

local function listing(folder)
  local pipe, list = assert(io.popen("LC_ALL=C ls -A " .. folder)), {}
  for name in pipe:lines() do
    list[#list + 1] = name
  end
  pipe:close()
  return list
end

describe("a file that is written", function()
  after_each(files.clean)

  it("has what was given, in the one form that it can have", function()
    local tensors, metadata = some()
    local path = written(tensors, metadata)
    local f = safetensors.open(path)
    for name, t in pairs(tensors) do
      assert.same({ t.dtype, t.shape }, { f:tensor(name).dtype, f:tensor(name).shape })
      assert.same(t:totable(), f:tensor(name):totable())
    end
    for key, value in pairs(metadata) do
      assert.equal(value, f:metadata(key))
    end
    local bytes = models.read(path)
    assert.equal(f:bytes(), #bytes)
    local header = bytes:sub(9, 8 + word(bytes, 0))
    assert.equal(0, (8 + #header) % 64)
    local begins = '{"__metadata__":{"first":"a \\"text\\"\\u000a\\\\ and \\u0001, ü","second":"2"},"\\"quoted\\\\\\u0001\\"":'
      .. '{"dtype":"F32","shape":[1],"data_offsets":[0,4]}'
    assert.equal(begins, header:sub(1, #begins))
    local at, before = 0, nil
    for name in header:gmatch '[{,]"([^"]-)":{"dtype"' do
      assert.is_true(not before or before < name, name)
      before = name
    end
    for name, t in pairs(cjson.decode(header)) do
      if name ~= "__metadata__" and not name:find "%.filler$" then
        assert.equal(0, t.data_offsets[1] % 64, name)
      end
      at = math.max(at, t.data_offsets and t.data_offsets[2] or 0)
    end
    assert.equal(0, at % 64)
    assert.equal(8 + #header + at, #bytes)
    assert.equal(bytes, models.read((written(some()))))
  end)

  it("has the CRC-32 of its header and of each tensor, and theirs", function()
    assert.equal(0xcbf43926, crc32 "123456789") -- the check value of the algorithm's catalogue
    local path = written(some())
    local f, bytes = safetensors.open(path), models.read(path)
    local start = 8 + word(bytes, 0)
    local header, count = cjson.decode(bytes:sub(9, start)), 0
    for name, t in pairs(header) do
      if name ~= "__metadata__" and name ~= "checksums" then
        local own = bytes:sub(start + t.data_offsets[1] + 1, start + t.data_offsets[2])
        assert.equal(crc32(own), f:checksum(name), name)
        count = count + 1
      end
    end
    assert.equal(crc32(bytes:sub(1, start)), f:checksum())
    local sums = bytes:sub(start + header.checksums.data_offsets[1] + 1)
    assert.equal(crc32(sums:sub(1, -5)), word(sums, #sums / 4 - 1))
    assert.equal(("\0"):rep(#sums - 4 * (count + 2)), sums:sub(4 * (count + 1) + 1, -5))
    f:verify()
  end)

  it("is refused when any bit of it is another, and what is small always", function()
    local path = written(some())
    local bytes = models.read(path)
    local start = 8 + word(bytes, 0)
    local wide = cjson.decode(bytes:sub(9, start)).wide.data_offsets
    local random, at = files.random(3), 1
    while at <= #bytes do
      local flipped = bytes:sub(1, at - 1) .. string.char(bit.bxor(bytes:byte(at), 2 ^ random(8))) .. bytes:sub(at + 1)
      local other = files.write(flipped)
      local function opened(most)
        return pcall(function() safetensors.open(other):verify(most) end)
      end
      assert.is_false(opened(), at)
      local ok = opened(399)
      local in_wide = at > start + wide[1] and at <= start + wide[2]
      assert.equal(in_wide, ok, at)
      assert(os.remove(other))
      at = at + 1 + random(9)
    end
  end)

  it("is refused at any shorter length", function()
    local bytes = models.read((written(some())))
    for length = 0, #bytes - 1, 7 do
      assert.is_false(pcall(function() safetensors.open(files.write(bytes:sub(1, length))):verify() end), length)
    end
  end)

  it("may be another's: then it has no checksums", function()
    local f = safetensors.open(files.write(files.pack { { "a", "F32", { 1 }, "abcd" } }))
    assert.error_matches(function() f:verify() end, "has no checksums")
    assert.error_matches(function() f:checksum() end, "has no checksums")
    local g = safetensors.open((written { a = tensor.from { 1 } }))
    assert.error_matches(function() g:checksum "b" end, "has no checksum of a tensor 'b'")
  end)

  it("can be read into memory, where nothing that is done to the file is seen", function()
    local path = written { a = tensor.from { 1, 2 } }
    local f = safetensors.open(path, { copy = true })
    local a = f:tensor "a"
    assert(io.open(path, "wb")):close() -- empty now: the same pages, mapped, could not be read
    f:verify()
    assert.same({ 1, 2 }, a:totable())
    f:close()
    assert.same({ 1, 2 }, a:totable())
  end)

  it("is not begun with what cannot be written", function()
    local a = tensor.from { 1 }
    local folder = files.folder {}
    local path = folder .. "/f"
    for message, tensors in pairs {
      ["tensor 'a' is 3, expected a tensor"] = { a = 3 },
      ["two tensors have the name 'a.filler'"] = { a = a, ["a.filler"] = a },
      ["two tensors have the name 'checksums'"] = { checksums = a },
      ["has the name __metadata__"] = { ["__metadata__"] = a },
      ["a tensor's name is 1, expected a string"] = { a },
    } do
      assert.error_matches(function() safetensors.write(path, tensors) end, message, 1, true)
    end
    assert.error_matches(function() safetensors.write(path, { ["\255"] = a }) end, "UTF%-8")
    assert.error_matches(function() safetensors.write(path, {}, { a = 1 }) end, "metadata 'a' is 1, expected a string", 1, true)
    assert.error_matches(function() safetensors.write(path, {}, { a = "\0" }) end, "without zero bytes", 1, true)
    assert.error_matches(function() safetensors.write(path, {}, { a = ("x"):rep(1e8) }) end,
      "names and metadata make a header of 100000120 bytes, expected at most 100000000", 1, true)
    assert.same({}, listing(folder))
  end)
end)

describe("what was there", function()
  local one, two = { a = tensor.from { 1 } }, { a = tensor.from { 2 } }

  after_each(files.clean)

  local function value(path)
    return safetensors.open(path):tensor("a")[1]
  end

  it("is replaced, keeps its permissions, and goes on where it is open", function()
    local path, folder = written(one)
    assert(os.execute("chmod 640 " .. path) == 0)
    local before = safetensors.open(path)
    safetensors.write(path, two)
    before:verify()
    assert.same({ 1, 2 }, { before:tensor("a")[1], value(path) })
    assert.same({ "f.safetensors" }, listing(folder))
    local pipe = io.popen("stat -c %a " .. path)
    assert.equal("640", pipe:read "*l")
    pipe:close()
  end)

  it("is found through links, which stay, also where nothing is yet", function()
    local path, folder = written(one)
    local function link(name, to)
      assert(os.execute(("ln -s '%s' '%s/%s'"):format(to, folder, name)) == 0)
      return folder .. "/" .. name
    end
    safetensors.write(link("link", "f.safetensors"), two)
    assert.equal(2, value(path))
    link("broken", "none")
    safetensors.write(link("twice", folder .. "/broken"), one)
    assert.equal(1, value(folder .. "/none"))
    local lost, loop = link("lost", "/nowhere/f"), link("loop", "loop")
    assert.error_matches(function() safetensors.write(lost, one) end, "cannot write '/nowhere/f': No such file", 1, true)
    assert.error_matches(function() safetensors.write(loop, one) end, "symbolic links", 1, true)
    local links = io.popen("find " .. folder .. " -type l | wc -l")
    assert.equal(5, links:read "*n")
    links:close()
  end)

  it("must be one that may be written to, and keeps its owner", function()
    pcall(ffi.cdef, "int seteuid(unsigned user);")
    local user = io.popen "id -u"
    local root = user:read "*n" == 0
    user:close()
    local path, folder = written(one)
    assert(os.execute("chmod 777 " .. folder) == 0)
    if root then
      assert(os.execute(("chown 12:34 %s; chmod 640 %s"):format(path, path)) == 0)
      safetensors.write(path, two)
      local pipe = io.popen("stat -c '%u %g %a' " .. path)
      assert.equal("12 34 640", pipe:read "*l")
      pipe:close()
      assert.equal(0, ffi.C.seteuid(56))
    else
      assert(os.execute("chmod 400 " .. path) == 0)
    end
    local ok, message = pcall(safetensors.write, path, one)
    local beside = pcall(safetensors.write, folder .. "/g", one)
    assert.equal(0, root and ffi.C.seteuid(0) or 0)
    assert.same({ false, true }, { ok, beside })
    assert.matches("cannot write '" .. path .. "': Permission denied", message, 1, true)
    assert.same({ "f.safetensors", "g" }, listing(folder))
  end)

  it("must be a file in a folder that is there", function()
    local folder = files.folder {}
    assert(os.execute("mkfifo " .. folder .. "/pipe") == 0)
    for message, path in pairs {
      ["it is a directory, expected a file"] = folder,
      ["it is not a regular file, expected a file"] = folder .. "/pipe",
      ["cannot write '" .. folder .. "/no/f': No such file or directory"] = folder .. "/no/f",
      ["cannot write '" .. folder .. "/new/': expected the path of a file"] = folder .. "/new/",
      ["the name is too long"] = folder .. "/" .. ("n"):rep(250),
      ["the path is too long"] = "/" .. ("n"):rep(5000),
    } do
      assert.error_matches(function() safetensors.write(path, one) end, message, 1, true)
    end
  end)

  it("stays when the new one does not fit, and nothing is left of that", function()
    local path, folder = written(one)
    local script = files.write(([[
      package.path = "./lua/?.lua;./lua/?/init.lua;" .. package.path
      local safetensors, tensor = require "perigee.safetensors", require "perigee.tensor"
      print(pcall(safetensors.write, %q, { a = tensor.new("F32", 100000) }))
    ]]):format(path))
    local pipe = assert(io.popen(("sh -c \"trap '' XFSZ; ulimit -f 64; exec luajit %s\" 2>&1"):format(script)))
    local said = pipe:read "*a"
    pipe:close()
    assert.matches("false.*cannot write '" .. path .. "': File too large", said)
    assert.equal(1, value(path))
    assert.same({ "f.safetensors" }, listing(folder))
  end)

  it("stays on a full disk", function()
    local folder = files.folder {}
    if os.execute(("mount -t tmpfs -o size=256k none %s 2> /dev/null"):format(folder)) ~= 0 then
      return pending "this user may not mount a small disk"
    end
    local path = folder .. "/f"
    safetensors.write(path, one)
    local ok, message = pcall(safetensors.write, path, { a = tensor.new("F32", 100000) })
    local kept, list = value(path), listing(folder)
    live() -- what is mapped
    assert(os.execute("umount " .. folder) == 0)
    assert.is_false(ok)
    assert.matches("No space left on device", message, 1, true)
    assert.equal(1, kept)
    assert.same({ "f" }, list)
  end)

  it("is freed of what a killed process left, but not of what a living one writes", function()
    local path, folder = written(one)
    local left, alive = folder .. "/.f.safetensors.saving-1-1", folder .. "/.f.safetensors.saving-2-2"
    local notes = ".f.safetensors.saving-1-notes"
    for _, name in ipairs { left, alive, folder .. "/.g.saving-1-1", folder .. "/.f.safetensors", folder .. "/" .. notes } do
      assert(io.open(name, "w")):close()
    end
    local holder = assert(io.popen(("flock %s cat"):format(alive), "w"))
    os.execute(("while flock -n %s true; do sleep 0.01; done"):format(alive))
    safetensors.write(path, two)
    assert.same({ ".f.safetensors", notes, ".f.safetensors.saving-2-2", ".g.saving-1-1", "f.safetensors" }, listing(folder))
    holder:close()
    safetensors.write(path, two)
    assert.same({ ".f.safetensors", notes, ".g.saving-1-1", "f.safetensors" }, listing(folder))
  end)
end)
