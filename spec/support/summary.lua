--- The output of the specs: busted's own output for a terminal or for a file, then one line with counts and the reasons of
-- skipped tests. `.busted` names this module as the output.
--
--   1469 passed, 0 failed, 96 skipped: 70 need AMX, 26 need ../shared
--
-- Skipped tests are only counted; `--verbose` lists each.
local counts = require "spec.support.counts"
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

local function reason_of(pending)
  local reason = tostring(pending.message or pending.element.name):gsub("^%S-:%d+: ", "")
  for _, kind in ipairs(REASONS) do
    if reason:find(kind[1]) then
      return kind[2]
    end
  end
  return reason
end

local function total_of(handler)
  local total = counts.new()
  total.passed, total.failed = handler.successesCount, handler.failuresCount + handler.errorsCount
  for _, pending in ipairs(handler.pendings) do
    counts.skip(total, reason_of(pending), 1)
  end
  return total
end

return function(options)
  local busted = require "busted"
  local handler = require("busted.outputHandlers." .. (term.isatty(io.stdout) and "utfTerminal" or "plainTerminal"))(options)
  local total

  busted.subscribe({ "suite", "end" }, function()
    total = total_of(handler)
    if not options.verbose then
      handler.pendings = {} -- busted would list them
    end
    return nil, true
  end, { priority = 1 })

  busted.subscribe({ "suite", "end" }, function()
    io.write("\n", counts.line(total), "\n")
    return nil, true
  end)
  return handler
end
