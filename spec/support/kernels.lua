--- The list of kernels (kernels/list.h), and the tests that each listed kernel gets.
--
--   local kernels = require "spec.support.kernels"
--   kernels.each_isa({ "gemm_f32" }, function(isa, check)
--     check("is one chain of fma", function() ... end)
--   end)
local ffi = require "ffi"
local C = require("spec.support.native").cdef [[
  const char *spec_kernels_operator(int isa, int i);
  const char *spec_kernels_row_operator(int i);
]]

local M = {
  tested = {}, -- tested[operator][isa] is the number of tests that each_isa has defined
}

local function names(f)
  local list, i = {}, 0
  while f(i) ~= nil do
    list[i + 1] = ffi.string(f(i))
    i = i + 1
  end
  return list
end

--- The operators that an ISA has kernels for; none if this build has no kernels for it.
function M.operators(isa)
  return names(function(i) return C.spec_kernels_operator(isa, i) end)
end

--- The operators of kernels/rows, in the order of spec/kernels/rows.c: their numbers from 0 are the `op` of rows_case.
function M.row_operators()
  return names(C.spec_kernels_row_operator)
end

local function count(operators, isa)
  for _, operator in ipairs(operators) do
    M.tested[operator] = M.tested[operator] or {}
    M.tested[operator][isa] = (M.tested[operator][isa] or 0) + 1
  end
end

--- Calls f(isa, check) for each ISA. check(title, test) defines a test of the kernels of these operators, which is skipped where
-- the CPU does not run the ISA.
function M.each_isa(operators, f)
  local busted = getfenv(f) -- what busted gives to specs, as globals
  for isa = 0, C.PGEE_ISAS - 1 do
    busted.describe(ffi.string(C.pgee_isa_name(isa)), function()
      f(isa, function(title, test)
        count(operators, isa)
        busted.it(title, function()
          if C.pgee_isa_runs(isa) == 0 then
            return busted.pending(ffi.string(C.pgee_isa_reason(isa)))
          end
          test()
        end)
      end)
    end)
  end
end

return M
