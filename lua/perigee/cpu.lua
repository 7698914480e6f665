--- The CPU: its name, its instruction sets (ISAs), the threads and CPUs in use, its peaks, and whether oneDNN is there.
--
-- An ISA is a number, C.PGEE_REF to C.PGEE_ISAS - 1. The ISA in force is the one whose kernels run.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local process = require "perigee.os.process"
local C, check, error = pgee.C, pgee.check, pgee.error

local cpu = {}

--- The model's name as Linux has it: "AMD EPYC 7B13".
function cpu.name()
  return ffi.string(C.pgee_cpu_name())
end

---- Instruction sets --------------------------------------------------------------------------------------------------

local out_int = ffi.new "int[1]"

--- The ISA in force: the best that this CPU and Linux can run, or the one that PERIGEE_ISA names.
function cpu.isa()
  check(C.pgee_isa(out_int))
  return out_int[0]
end

--- The name of an ISA, "avx512vnni"; without an argument, of the ISA in force.
function cpu.isa_name(isa)
  return ffi.string(C.pgee_isa_name(isa or cpu.isa()))
end

--- The names of all ISAs, from the slowest to the fastest.
function cpu.isa_names()
  local names = {}
  for isa = 0, C.PGEE_ISAS - 1 do
    names[#names + 1] = cpu.isa_name(isa)
  end
  return names
end

--- Puts an ISA in force, given as its number or its name. If this CPU cannot run it, that is an error.
function cpu.set_isa(isa)
  for number, name in ipairs(cpu.isa_names()) do
    isa = isa == name and number - 1 or isa
  end
  if type(isa) ~= "number" then
    error(("the ISA is %s, expected one of %s"):format(pgee.describe(isa), table.concat(cpu.isa_names(), ", ")))
  end
  check(C.pgee_isa_set(isa))
end

--- Calls f with another ISA in force. Returns what f returns.
function cpu.with_isa(isa, f)
  local before = cpu.isa()
  cpu.set_isa(isa)
  local results = { pcall(f) }
  cpu.set_isa(before)
  if not results[1] then
    error(results[2], 0)
  end
  return unpack(results, 2)
end

--- Why an ISA cannot run here; nil if it can.
function cpu.isa_reason(isa)
  local reason = ffi.string(C.pgee_isa_reason(isa))
  return reason ~= "" and reason or nil
end

--- Why AMX is not in force, as a sentence; nil if it is.
function cpu.amx_unused()
  if cpu.isa() < C.PGEE_AMX then
    return "AMX is not used: " .. (cpu.isa_reason(C.PGEE_AMX) or "PERIGEE_ISA asks for less")
  end
end

---- Threads and CPUs --------------------------------------------------------------------------------------------------

--- The number of threads that a run uses.
function cpu.threads()
  check(C.pgee_threads(out_int))
  return out_int[0]
end

--- Sets the number of threads, 1 to 256.
function cpu.set_threads(n)
  if type(n) ~= "number" or n % 1 ~= 0 or math.abs(n) >= 2 ^ 31 then -- beyond 2^31, C would see another number
    error(("threads: expected an integer from 1 to 256, got %s"):format(pgee.describe(n)))
  end
  check(C.pgee_threads_set(n))
end

--- The numbers of the CPUs that this process may run on, ascending.
cpu.affinity = process.affinity

--- From now on this thread, and the threads that it starts, run on these CPUs only.
cpu.pin = process.pin

---- Peaks -------------------------------------------------------------------------------------------------------------

local TRIES = 100 -- a peak is the best of so many
local out_rate, rate = pgee.out_number "double"

local PEAKS = {
  int8 = C.PGEE_PEAK_INT8, f32 = C.PGEE_PEAK_F32, bf16 = C.PGEE_PEAK_BF16, read = C.PGEE_PEAK_READ, l2 = C.PGEE_PEAK_L2,
  l3 = C.PGEE_PEAK_L3,
}

--- Measures the peaks of the threads in use: { int8 =, f32 =, bf16 = } operations a second (a multiply-add counts as two), and
-- { read =, l2 =, l3 = } bytes a second from memory and from the caches. A peak is nil if the ISA in force or the CPU has no such
-- instructions, or if the cache cannot be measured. names: a list of those to measure, by default int8, f32, read.
function cpu.peaks(names)
  local peaks = {}
  for _, name in ipairs(names or { "int8", "f32", "read" }) do
    check(C.pgee_cpu_peak(PEAKS[name], TRIES, out_rate))
    local max = rate()
    peaks[name] = max > 0 and max or nil
  end
  return peaks
end

---- oneDNN ------------------------------------------------------------------------------------------------------------

--- The version of oneDNN, "3.2.0"; nil and the reason if it cannot be used.
function cpu.onednn()
  local version = C.pgee_onednn_version()
  if version ~= nil then
    return ffi.string(version)
  end
  return nil, ffi.string(C.pgee_message())
end

return cpu
