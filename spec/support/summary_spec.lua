-- The summary at the end of a run of the specs (spec/support/summary.lua): runs busted on specs made here.
local files = require "spec.support.files"
local skip = require "spec.support.skip"
local it = os.getenv "PERIGEE_HARD" and skip "another program than the host of sanitizers" or it

local SPEC = [[
local skip = require "spec.support.skip"
describe("a", function()
  it("passes", function() end)
  it("fails", function() assert.are.equal(1, 2) end)
  it("breaks", function() error "broken" end)
  it("needs tiles", function() pending "the CPU lacks AMX-TILE" end)
  it("needs data", function() return pending "there is no ../shared" end)
  it("needs another thing", function() pending "no thing" end)
  pending "on amx: the kernel does not save amx registers (AMX)"
  skip "there is no ../shared/data" ("needs data, too")
end)
]]

local function run(text, options)
  local folder = files.folder { ["made_spec.lua"] = text }
  local process = assert(io.popen(("busted --lua=luajit %s %s 2>&1; echo $?"):format(options or "", folder)))
  local output, status = process:read("*a"):match "^(.*)(%d+)\n$"
  process:close()
  return output, tonumber(status)
end

describe("a run of the specs", function()
  after_each(files.clean)

  it("ends with one line: counts, and why tests were skipped", function()
    local text, status = run(SPEC)
    assert.are_not.equal(0, status)
    assert.matches("\n1 passed, 2 failed, 5 skipped: 2 need %.%./shared, 2 need AMX, 1 no thing\n$", text)
    assert.matches("%.%./shared is a folder next to the repository", text)
    assert.matches("Failure %-> %S+/made_spec%.lua @ 4\n", text)
    assert.matches("made_spec%.lua:4: Expected objects to be equal", text)
    assert.matches("made_spec%.lua:5: broken", text)
    assert.falsy(text:find("Pending ->", 1, true))
    assert.matches("Pending %-> %S+/made_spec%.lua @ 6\n", (run(SPEC, "--verbose")))
  end)

  it("says no reasons where nothing was skipped", function()
    local text, status = run [[it("passes", function() end)]]
    assert.are.equal(0, status)
    assert.matches("\n1 passed, 0 failed, 0 skipped\n$", text)
    assert.falsy(text:find("shared", 1, true))
  end)
end)
