-- The summary at the end of a run of the specs (spec/support/summary.lua), and runs of several processes (spec/support/run.sh):
-- runs busted on specs made here.
local counts = require "spec.support.counts"
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

  it("adds up the lines of several processes", function()
    local total = counts.new()
    counts.add(total, "1469 passed, 0 failed, 0 skipped")
    counts.add(total, "2 passed, 1 failed, 9 skipped: 7 need AMX, 2 there is no python3, or no pip")
    counts.add(total, "0 passed, 2 failed, 4 skipped: 3 need AVX2, 1 need AMX")
    assert.are.equal("1471 passed, 3 failed, 13 skipped: 8 need AMX, 3 need AVX2, 2 there is no python3, or no pip",
      counts.line(total))
  end)

  -- The output and the status of run.sh with two processes on files made here.
  local function run_files(contents)
    local folder = files.folder(contents)
    return files.bash(("cd '%s' && LIMIT=20 sh spec/support/run.sh 2 'busted --lua=luajit' %s"):format(files.top(), folder), 60)
  end

  it("of several processes prints the output of files in which tests failed, and the sum", function()
    local text, status = run_files { ["a_spec.lua"] = SPEC, ["b_spec.lua"] = [[it("passes", function() end)]] }
    assert.are_not.equal(0, status)
    assert.matches("a_spec%.lua:5: broken", text)
    assert.matches("b_spec%.lua: 1 passed, 0 failed, 0 skipped\n", text)
    assert.matches("\n2 passed, 2 failed, 5 skipped: 2 need %.%./shared, 2 need AMX, 1 no thing\n$", text)
    text, status = run_files { ["a_spec.lua"] = [[it("also passes", function() end)]],
      ["b_spec.lua"] = [[it("passes", function() end)]] }
    assert.are.equal(0, status)
    assert.matches("\n2 passed, 0 failed, 0 skipped\n$", text)
  end)

  it("counts a process that dies as a failed test", function()
    local text, status = run_files {
      ["a_spec.lua"] = [[it("exits", function() os.exit(3) end)]],
      ["b_spec.lua"] = [[it("passes", function() end)]],
      ["c_spec.lua"] = [[local busted = require "busted"
        it("passes", function() end)
        busted.subscribe({ "exit" }, function() os.exit(4) end)]],
    }
    assert.are_not.equal(0, status)
    assert.matches("a_spec%.lua: the process ended with status %d", text)
    assert.matches("c_spec%.lua: the process ended with status %d", text)
    assert.matches("\n1 passed, 2 failed, 0 skipped\n$", text)
  end)
end)
