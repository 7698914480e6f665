--- Counts of a run of the specs, and their line:
--
--   1469 passed, 0 failed, 96 skipped: 70 need AMX, 26 need ../shared
--
--   luajit spec/support/counts.lua < LINES     prints the sum of several lines; the status is 1 if a test failed or none passed
--
-- As a module:
--
--   local total = counts.new()       -- { passed = 0, failed = 0, skipped = 0, reasons = { [reason] = how many tests } }
--   counts.skip(total, reason, 26)   -- adds skipped tests
--   counts.add(total, line)          -- adds the counts of a line
--   counts.line(total)               -- the line
local counts = {}

local SHARED = [[
../shared is a folder next to the repository, and not part of it: public data sets and checkpoints that were fine-tuned on them.
PERIGEE_SHARED names it if it lies somewhere else. Tests that need it are skipped without it.]]

function counts.new()
  return { passed = 0, failed = 0, skipped = 0, reasons = {} }
end

function counts.skip(total, reason, count)
  total.skipped = total.skipped + count
  total.reasons[reason] = (total.reasons[reason] or 0) + count
end

function counts.add(total, line)
  local passed, failed, reasons = line:match "^(%d+) passed, (%d+) failed, %d+ skipped:? ?(.*)$"
  total.passed = total.passed + passed
  total.failed = total.failed + failed
  for count, reason in (", " .. reasons:gsub(", (%d+ )", "\n, %1") .. "\n"):gmatch ", (%d+) ([^\n]+)\n" do
    counts.skip(total, reason, tonumber(count))
  end
end

--- The most frequent reason comes first. A paragraph before the line explains ../shared if tests needed it.
function counts.line(total)
  local reasons, words = {}, {}
  for reason in pairs(total.reasons) do
    reasons[#reasons + 1] = reason
  end
  table.sort(reasons, function(a, b)
    local m, n = total.reasons[a], total.reasons[b]
    return m > n or m == n and a < b
  end)
  for i, reason in ipairs(reasons) do
    words[i] = ("%d %s"):format(total.reasons[reason], reason)
  end
  return ("%s%d passed, %d failed, %d skipped%s"):format(total.reasons["need ../shared"] and SHARED .. "\n\n" or "", total.passed,
    total.failed, total.skipped, words[1] and ": " .. table.concat(words, ", ") or "")
end

if arg and (arg[0] or ""):find "counts%.lua$" then
  local total = counts.new()
  for line in io.lines() do
    counts.add(total, line)
  end
  print("\n" .. counts.line(total))
  os.exit(total.failed == 0 and total.passed > 0 and 0 or 1)
end
return counts
