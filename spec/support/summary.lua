--- The output of the specs: busted's own output for a terminal or for a file, then one line with counts and the reasons of
-- skipped tests. `.busted` names this module as the output.
--
--   1469 passed, 0 failed, 96 skipped: 70 need AMX, 26 need ../shared
--
-- Skipped tests are only counted; `--verbose` lists each.
local term = require "term"

-- Short forms of reasons that have several wordings: the first pattern that is found in a reason counts. Other reasons are
-- printed unchanged.
local REASONS = {
  { "AMX", "need AMX" },
  { "AVX512", "need AVX512-VNNI" },
  { "AVX%-?VNNI", "need AVX-VNNI" },
  { "AVX2", "need AVX2" },
  { "%.%./shared", "need ../shared" },
  { "make models", "need `make models`" },
  { "make demo", "need the model of `make demo`" },
  { "make quality", "belong to `make quality`" },
  { "make hard", "belong to `make hard`" },
  { "sanitizers", "do not run under sanitizers" },
}

local SHARED = [[
../shared is a folder next to the repository, and not part of it: public data sets and checkpoints that were fine-tuned on them.
PERIGEE_SHARED names it if it lies somewhere else. Tests that need it are skipped without it.]]

local function reason_of(pending)
  local reason = tostring(pending.message or pending.element.name):gsub("^%S-:%d+: ", "")
  for _, kind in ipairs(REASONS) do
    if reason:find(kind[1]) then
      return kind[2]
    end
  end
  return reason
end

-- { { reason, count }... }, the most frequent first.
local function counted(pendings)
  local list = {}
  for _, pending in ipairs(pendings) do
    local reason = reason_of(pending)
    if not list[reason] then
      list[reason] = { reason, 0 }
      list[#list + 1] = list[reason]
    end
    list[reason][2] = list[reason][2] + 1
  end
  table.sort(list, function(a, b) return a[2] > b[2] or a[2] == b[2] and a[1] < b[1] end)
  return list
end

local function line_of(handler, reasons)
  local words = {}
  for i, reason in ipairs(reasons) do
    words[i] = ("%d %s"):format(reason[2], reason[1])
  end
  return ("%d passed, %d failed, %d skipped%s"):format(handler.successesCount, handler.failuresCount + handler.errorsCount,
    handler.pendingsCount, words[1] and ": " .. table.concat(words, ", ") or "")
end

return function(options)
  local busted = require "busted"
  local handler = require("busted.outputHandlers." .. (term.isatty(io.stdout) and "utfTerminal" or "plainTerminal"))(options)
  local reasons

  busted.subscribe({ "suite", "end" }, function()
    reasons = counted(handler.pendings)
    if not options.verbose then
      handler.pendings = {} -- busted would list them
    end
    return nil, true
  end, { priority = 1 })

  busted.subscribe({ "suite", "end" }, function()
    io.write("\n", reasons["need ../shared"] and SHARED .. "\n\n" or "", line_of(handler, reasons), "\n")
    return nil, true
  end)
  return handler
end
