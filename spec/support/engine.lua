--- Engine: functions for specs of the C core: random numbers with fixed seeds, threads and ISAs that are put back, processes.
local ffi = require "ffi"
local assert = require "luassert"
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local C = pgee.C

local M = {}

--- Returns a function that returns the next number of a fixed sequence in [-1, 1).
function M.random(seed)
  local state = seed or 1
  return function()
    state = (state * 16807) % 2147483647
    return state / 1073741823.5 - 1
  end
end

--- Returns a pointer to the floats of an F32 tensor, and the stride. Use it only for floats that Lua or the native kernels wrote:
-- reading a NaN of other origin is not safe in LuaJIT (perigee.ffi says why).
function M.floats(t)
  local bits, stride = t:pointer()
  assert(t.dtype == "F32")
  return ffi.cast("float *", bits), stride
end

--- F32 [rows][width] of random numbers, times `scale`.
function M.matrix(rows, width, seed, scale)
  local t, next_number = tensor.new("F32", { rows, width }), M.random(seed or 1)
  local data, stride = M.floats(t)
  for i = 0, rows - 1 do
    for j = 0, width - 1 do
      data[i * stride + j] = next_number() * (scale or 1)
    end
  end
  return t
end

--- F32 [n] of random numbers, times `scale`, plus `shift`.
function M.vector(n, seed, scale, shift)
  local t, next_number = tensor.new("F32", { n }), M.random(seed or 1)
  local data = M.floats(t)
  for i = 0, n - 1 do
    data[i] = next_number() * (scale or 1) + (shift or 0)
  end
  return t
end

--- The float nearest to x.
local one = ffi.new "float[1]"
function M.float(x)
  one[0] = x
  return one[0]
end

--- Rounds to the nearest integer, ties to even.
function M.rne(x)
  return (x + 6755399441055744) - 6755399441055744
end

--- Asserts that a tensor equals the nested lists `want`: each difference is at most tolerance * max(1, max |want|).
function M.near(want, got, tolerance)
  local most = 1
  for _, row in ipairs(want) do
    for _, v in ipairs(row) do
      most = math.max(most, math.abs(v))
    end
  end
  for t, row in ipairs(want) do
    local values = got[t]
    for k, v in ipairs(row) do
      local close = math.abs(values[k] - v) <= tolerance * most
      if not close then
        error(("[%d][%d] is %.9g, expected %.9g"):format(t, k, values[k], v), 2)
      end
    end
  end
end

local out = ffi.new "int[1]"

local function restoring(get, set, value, f)
  assert.equal(0, get(out))
  local before = out[0]
  assert.equal(0, set(value))
  local ok, result = pcall(f)
  assert.equal(0, set(before))
  return ok and result or ok or error(result, 0)
end

--- Calls f with a number of threads, or with an ISA, and puts back the setting.
function M.with_threads(n, f)
  return restoring(C.pgee_threads, C.pgee_threads_set, n, f)
end
function M.with_isa(isa, f)
  return restoring(C.pgee_isa, C.pgee_isa_set, isa, f)
end

--- Returns the numbers of the ISAs that run on this CPU, the reference first.
function M.isas()
  local list = {}
  for isa = 0, C.PGEE_ISAS - 1 do
    if C.pgee_isa_runs(isa) == 1 then
      list[#list + 1] = isa
    end
  end
  return list
end

--- Calls make() with 1, 2 and 7 threads on every ISA that runs. make returns a list of tensors: asserts that they are equal each
-- time.
function M.same_everywhere(make)
  local want
  for _, isa in ipairs(M.isas()) do
    for _, threads in ipairs { 1, 2, 7 } do
      local got = M.with_isa(isa, function() return M.with_threads(threads, make) end)
      want = want or got
      local name = ffi.string(C.pgee_isa_name(isa))
      for i, t in ipairs(want) do
        assert.is_true(t:equals(got[i]), ("result %d differs on %s with %d threads"):format(i, name, threads))
      end
    end
  end
  return want
end

--- Runs Lua text in a new process in the top folder with these environment variables. Returns its output and its exit status.
function M.process(environment, text)
  local path = os.tmpname()
  local file = assert(io.open(path, "w"))
  file:write [[package.path = "lua/?.lua;lua/?/init.lua;" .. package.path ]]
  file:write(text)
  file:close()
  local command = {}
  for name, value in pairs(environment) do
    command[#command + 1] = ("%s='%s'"):format(name, value)
  end
  -- The new process needs the same interpreter: under sanitizers it is the one with their runtimes.
  local line = ("env %s \"$(readlink /proc/$PPID/exe)\" %s 2>&1; echo :$?"):format(table.concat(command, " "), path)
  local pipe = assert(io.popen(line))
  local output = pipe:read "*a"
  pipe:close()
  os.remove(path)
  local before, status = output:match "^(.*):(%d+)\n$"
  return before, tonumber(status)
end

return M
