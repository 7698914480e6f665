-- Files that are replaced as a whole. spec/recipes/pipe_spec.lua tests files that are written bit by bit.
local file = require "perigee.base.file"
local files = require "spec.support.files"
local find = require "perigee.find"

describe("file.replace", function()
  local folder, path

  local function content(of)
    local f = io.open(of)
    local text = f and f:read "*a"
    return f and f:close() and text
  end

  before_each(function()
    folder = files.folder {}
    path = folder .. "/f"
  end)
  after_each(files.clean)

  it("writes a file, and replaces one", function()
    assert.is_true(file.replace(path, "one\n"))
    assert.is_true(file.replace(path, ""))
    assert.equal("", content(path))
    assert.is_true(file.replace(path, ("x"):rep(100000)))
    assert.equal(("x"):rep(100000), content(path))
    assert.is_nil(content(path .. ".part"))
  end)

  it("takes the place of what an earlier process left", function()
    files.put(path .. ".part", ("old"):rep(1000))
    assert.is_true(file.replace(path, "new"))
    assert.equal("new", content(path))
  end)

  it("follows a link, which stays", function()
    files.put(folder .. "/target", "old")
    assert.equal(0, os.execute(("ln -s target %s"):format(path)))
    assert.is_true(file.replace(path, "new"))
    assert.equal("new", content(folder .. "/target"))
    assert.equal(0, os.execute(("test -L %s"):format(path)))
  end)

  it("says why it failed, and leaves the old file", function()
    assert.same({ n = 2, nil, ("cannot write '%s/none/f.part': No such file or directory"):format(folder) },
      { n = 2, file.replace(folder .. "/none/f", "new") })
    assert.equal(0, os.execute("mkfifo " .. path))
    assert.same({ n = 2, nil, ("cannot write '%s': it is a named pipe, expected a file"):format(path) },
      { n = 2, file.replace(path, "new") })
  end)

  it("leaves nothing of a text that the disk has no room for", function()
    files.put(path, "old")
    local text, status = files.bash(([[
      cd '%s'; trap '' XFSZ; ulimit -f 1
      luajit -e 'dofile "lua/perigee/find.lua"
        print(require("perigee.base.file").replace("%s", ("x"):rep(4096)))']]):format(find.started, path), 20)
    assert.same({ ("nil\tcannot write '%s.part': File too large\n"):format(path), 0 }, { text, status })
    assert.equal("old", content(path))
    assert.is_nil(content(path .. ".part"))
  end)

  it("waits for another process that writes the same file, for a second", function()
    local part = file.part(path)
    assert.same({ n = 2, nil, ("cannot write '%s.part': another process is writing it"):format(path) },
      { n = 2, file.replace(path, "new") })
    part:finish()
    assert.is_true(file.replace(path, "new"))
  end)
end)
