local ffi = require "ffi"
local pgee = require "perigee.ffi"
local engine = require "spec.support.engine"
local models = require "spec.support.models"
local C = pgee.C

-- Reads kernels/isa.h. First result: the ISAs, a list of { name =, base = a number, automatic = }; the ISA with number i is entry
-- i + 1. Second result: { [number] = { flag... } }, the CPU features that an ISA needs beyond those of its base. /proc/cpuinfo
-- spells the features in the same way.
local function listed()
  local text, isas, flags = models.read "kernels/isa.h", {}, {}
  for number, name, base, automatic in text:gmatch 'ISA%(([%u%d_]+), *[%w_]+, *"([^"]+)", *([%u%d_]+), *%u+, *(%d),' do
    isas[C["PGEE_" .. number] + 1] = { name = name, base = tonumber(C["PGEE_" .. base]), automatic = automatic == "1" }
    flags[tonumber(C["PGEE_" .. number])] = {}
  end
  for number, feature in text:gmatch 'FEATURE%(([%u%d_]+),[^"]*"([^"]+)"%)' do
    table.insert(flags[tonumber(C["PGEE_" .. number])], (feature:lower():gsub("-", "_")))
  end
  return isas, flags
end

local function name(isa)
  return ffi.string(C.pgee_isa_name(isa))
end

-- The name of the ISA in force in a process with this PERIGEE_ISA ("" is none), or the message.
local function in_force(value)
  return (engine.process({ PERIGEE_ISA = value }, [[
    local ffi, pgee = require "ffi", require "perigee.ffi"
    local isa = ffi.new "int[1]"
    local status = pgee.C.pgee_isa(isa)
    io.write(ffi.string(status == 0 and pgee.C.pgee_isa_name(isa[0]) or pgee.C.pgee_message()))
  ]]))
end

describe("the CPU", function()
  it("has names for its instruction sets, and reasons for what it lacks", function()
    local isas = listed()
    assert.equal(tonumber(C.PGEE_ISAS), #isas)
    for isa = 0, C.PGEE_ISAS - 1 do
      assert.equal(isas[isa + 1].name, name(isa))
      assert.equal(C.pgee_isa_runs(isa) == 1, ffi.string(C.pgee_isa_reason(isa)) == "")
    end
    assert.equal(nil, C.pgee_isa_name(-1))
    assert.equal(nil, C.pgee_isa_name(C.PGEE_ISAS))
    assert.equal(0, C.pgee_isa_runs(99))
    assert.equal("there is no such instruction set", ffi.string(C.pgee_isa_reason(99)))
  end)

  it("always runs the reference and AMX's model", function()
    assert.equal(1, C.pgee_isa_runs(C.PGEE_REF))
    assert.equal(1, C.pgee_isa_runs(C.PGEE_AMX_MODEL))
  end)

  it("agrees with what the kernel lists", function()
    local file = assert(io.open "/proc/cpuinfo")
    local text = file:read "*a"
    file:close()
    local flags = " " .. text:match "flags%s*:%s*([^\n]*)" .. " "
    local isas, needed = listed()
    assert.same({ "avx", "fma", "f16c", "avx2" }, needed[tonumber(C.PGEE_AVX2)])
    for isa = 0, C.PGEE_ISAS - 1 do
      local all, at = true, isa
      repeat -- from an ISA to its base, down to the reference, which is its own
        for _, flag in ipairs(needed[at]) do
          all = all and flags:find(" " .. flag .. " ", 1, true) ~= nil
        end
        local base = isas[at + 1].base
        local ended = base == at
        at = base
      until ended
      assert.equal(all, C.pgee_isa_runs(isa) == 1, name(isa))
    end
    local model = text:match "model name%s*:%s*([^\n]*)"
    assert.equal(model:gsub("%s+$", ""), ffi.string(C.pgee_cpu_name()))
  end)

  it("runs the best instruction set there is, which is never the model", function()
    local best
    for i, isa in ipairs((listed())) do
      best = isa.automatic and C.pgee_isa_runs(i - 1) == 1 and i - 1 or best
    end
    assert.is_true(best < C.PGEE_AMX_MODEL)
    assert.equal(name(best), in_force "")
  end)

  it("runs what PERIGEE_ISA says", function()
    for _, isa in ipairs(engine.isas()) do
      assert.equal(name(isa), in_force(name(isa)))
    end
  end)

  it("refuses a PERIGEE_ISA that is misspelt, in everything that runs kernels", function()
    local names = {}
    for isa = 0, C.PGEE_ISAS - 1 do
      names[isa + 1] = name(isa)
    end
    local last = table.remove(names)
    assert.equal(("PERIGEE_ISA=avx9, expected %s or %s"):format(table.concat(names, ", "), last), in_force "avx9")
    local output, status = engine.process({ PERIGEE_ISA = "avx9" }, [[require("perigee.packed").new { { 1, 2 } }]])
    assert.matches("PERIGEE_ISA=avx9", output, 1, true)
    assert.equal(1, status)
  end)

  it("names no operator in that message, nor in the one about PERIGEE_THREADS", function()
    for variable, value in pairs { PERIGEE_ISA = "avx9", PERIGEE_THREADS = "none" } do
      local output = engine.process({ [variable] = value }, [[
        local x = require("perigee.tensor").from { { 1, 2 } }
        print(select(2, pcall(require("perigee.operator").run, "unit", { x = x, y = x })))]])
      assert.matches(("^%s=%s, expected "):format(variable, value), (output:gsub("^[^:]*:%d+: ", "")))
    end
  end)

  describe("asks Linux for AMX's tile registers", function()
    -- The output of a process that sets an alternate signal stack of 4 KiB before or after `text`. In the output, 1 means that
    -- the process has the AMX tiles.
    local function process(value, before, after)
      return (engine.process({ PERIGEE_ISA = value }, ([[
        local ffi, pgee = require "ffi", require "perigee.ffi"
        ffi.cdef "long syscall(long, ...); int sigaltstack(const void *, void *);"
        local memory = ffi.new "char[4096]"
        local function small_stack()
          local stack = ffi.new "struct { void *base; int flags; size_t bytes; }"
          stack.base, stack.bytes = memory, 4096
          return ffi.C.sigaltstack(stack, nil) == 0
        end
        local function tiles() -- ARCH_GET_XCOMP_PERM
          local bits = ffi.new "uint64_t[1]"
          assert(ffi.C.syscall(158, ffi.cast("long", 0x1022), bits) == 0)
          return tonumber(bits[0] / 2^18 %% 2)
        end
        local isa = ffi.new "int[1]"
        %s
        local reason = ffi.string(pgee.C.pgee_isa_reason(pgee.C.PGEE_AMX))
        local status = pgee.C.pgee_isa(isa)
        local name = ffi.string(status == 0 and pgee.C.pgee_isa_name(isa[0]) or pgee.C.pgee_message())
        io.write(name, " ", tiles(), " ", reason, " ")
        %s
        io.write(ffi.string(pgee.C.pgee_isa_reason(pgee.C.PGEE_AMX)))
      ]]):format(before or "", after or "")))
    end
    local amx = C.pgee_isa_runs(C.PGEE_AMX) == 1
    local it = amx and it or pending

    it("only if AMX is to be used", function()
      assert.equal("amx 1  ", process "")
      assert.equal("avx2 0  ", process "avx2")
      assert.equal("avx2 0  true", process("avx2", nil, "io.write(tostring(small_stack()))"))
      assert.equal("amx 1  false", process("", nil, "io.write(tostring(small_stack()))"))
    end)

    it("and says what to do if a small signal stack forbids them", function()
      local text = "Linux refused AMX tile registers because a thread's alternate signal stack is too small; "
        .. "expected sigaltstack "
      assert.matches("^avx512vnni 0  " .. text:gsub("%p", "%%%0") .. "with at least %d+ bytes, or PERIGEE_ISA=avx512vnni$",
        process("", "assert(small_stack())"))
      assert.matches("PERIGEE_ISA=amx does not run here: " .. text, process("amx", "assert(small_stack())"), 1, true)
    end)
  end)

  it("refuses a PERIGEE_ISA that it lacks, and says why", function()
    for isa = C.PGEE_REF, C.PGEE_AMX do
      if C.pgee_isa_runs(isa) == 0 then
        local reason = ffi.string(C.pgee_isa_reason(isa))
        assert.equal(("PERIGEE_ISA=%s does not run here: %s"):format(name(isa), reason), in_force(name(isa)))
        assert.equal(C.PGEE_UNSUPPORTED, C.pgee_isa_set(isa))
        return
      end
    end
    pending "this CPU lacks none"
  end)

  it("can be told another one", function()
    local now = ffi.new "int[1]"
    engine.with_isa(C.PGEE_REF, function()
      assert.equal(0, C.pgee_isa(now))
      assert.equal(C.PGEE_REF, now[0])
    end)
    assert.equal(C.PGEE_ARGUMENT, C.pgee_isa_set(-1))
  end)
end)
