-- .ci/deps where packages are missing and the user is not root: it prints the command that installs them, and ends.
local files = require "spec.support.files"

-- A PATH on which nothing is found but what the script itself runs.
local function empty_path()
  local folder = files.folder { id = "#!/bin/sh\necho 1000\n" }
  local command = "cd %s && chmod +x id && for f in sh dirname grep; do ln -s $(command -v $f) .; done"
  assert(os.execute(command:format(folder)) == 0)
  return folder
end

describe(".ci/deps", function()
  after_each(files.clean)

  it("prints one command that installs what is missing, each package once", function()
    local process = assert(io.popen(("PATH=%s /bin/sh .ci/deps lint embed lint hard 2>&1; echo $?"):format(empty_path())))
    local text, status = process:read("*a"):match "^(.*)(%d+)\n$"
    process:close()
    assert.are.equal("1", status, text)
    local packages = text:match "^Packages are missing%. As root:\n  apt%-get update && apt%-get install %-y %S+ (.*)\n$"
    assert.is_truthy(packages, text)
    local seen = {}
    for package in packages:gmatch "%S+" do
      assert.is_nil(seen[package], text)
      seen[package] = true
    end
    for _, package in ipairs { "gcc", "luajit", "lua-cjson", "pkgconf", "clang", "shellcheck" } do
      assert.is_true(seen[package], text)
    end
  end)
end)
