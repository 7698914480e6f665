-- Threads: the team, how many it has, and what it does when processes fork, callers come at once, or nobody calls.
local ffi = require "ffi"
local pgee = require "perigee.ffi"
local files = require "spec.support.files"
local engine = require "spec.support.engine"
local P = pgee.C
local C = require("spec.support.native").cdef [[
  int64_t spec_rounds(int threads, int64_t count);
  int spec_fail(int threads, int64_t steps, int64_t fail_at, int thread, int64_t *done);
  int spec_share(int threads, int64_t n, int64_t *ranges);
  int spec_float_state(int threads, int state);
  double spec_cpu_seconds(void);
  int spec_threads_from(const char *root, const int *cpus, int count);
  int spec_busy_start(void);
  void spec_busy_end(void);
  int fork(void);
  int waitpid(int pid, int *status, int options);
  void _exit(int status);
  int usleep(unsigned microseconds);
]]

-- The exit status of a child of fork that runs f: 0 if f returned true.
local function child(f)
  io.stdout:flush()
  local pid = C.fork()
  if pid == 0 then
    local ok, result = pcall(f)
    C._exit(ok and result and 0 or 1)
  end
  local status = ffi.new "int[1]"
  assert.equal(pid, C.waitpid(pid, status, 0))
  return status[0]
end

describe("the team", function()
  it("waits for all at a barrier", function()
    for _, threads in ipairs { 1, 2, 3, 7, 16 } do
      engine.with_threads(threads, function() assert.equal(0, tonumber(C.spec_rounds(threads, 100))) end)
    end
  end)

  it("goes from one size to another and back", function()
    for _, threads in ipairs { 7, 2, 5, 1, 7 } do
      engine.with_threads(threads, function() assert.equal(0, tonumber(C.spec_rounds(threads, 10))) end)
    end
  end)

  it("shares so that parts meet and differ by one at most", function()
    engine.with_threads(7, function()
      for _, n in ipairs { 0, 1, 6, 7, 8, 1000003 } do
        local ranges = ffi.new "int64_t[14]"
        assert.equal(0, C.spec_share(7, n, ranges))
        local at = 0
        for t = 0, 6 do
          local size = tonumber(ranges[2 * t + 1] - ranges[2 * t])
          assert.equal(at, tonumber(ranges[2 * t]))
          assert.is_true(size >= math.floor(n / 7) and size <= math.ceil(n / 7))
          at = at + size
        end
        assert.equal(n, at)
      end
    end)
  end)

  it("stops after the step that one thread fails, all threads together", function()
    engine.with_threads(7, function()
      local done = ffi.new "int64_t[1]"
      for _, at in ipairs { 0, 3, 9 } do
        for thread = 0, 6, 3 do
          assert.equal(P.PGEE_FORMAT, C.spec_fail(7, 10, at, thread, done))
          assert.equal(("step %d on thread %d"):format(at, thread), ffi.string(P.pgee_message()))
          assert.equal((at + 1) * 7, tonumber(done[0]))
        end
      end
      assert.equal(0, C.spec_fail(7, 10, -1, 0, done))
      assert.equal(70, tonumber(done[0]))
    end)
  end)

  it("computes with round to nearest and denormals, whatever the caller has set; only its workers block signals", function()
    for _, threads in ipairs { 1, 3 } do
      engine.with_threads(threads, function()
        for state = 0, 3 do -- default, toward zero, denormals flushed, down
          assert.equal(0, C.spec_float_state(threads, state))
        end
      end)
    end
  end)

  it("lets a second caller run alone", function()
    engine.with_threads(2, function()
      assert.equal(0, C.spec_busy_start())
      local alone, until_then = 0, P.pgee_seconds() + 60
      repeat
        local rounds = tonumber(C.spec_rounds(2, 3)) -- -1: it did not have two threads
        assert.is_true(rounds == 0 or rounds == -1)
        alone = alone + (rounds == -1 and 1 or 0)
      until alone == 20 or P.pgee_seconds() > until_then
      C.spec_busy_end()
      assert.equal(20, alone)
      assert.equal(0, tonumber(C.spec_rounds(2, 3)))
    end)
  end)
end)

describe("fork", function()
  local function works()
    return C.spec_rounds(3, 10) == 0
  end

  it("before the first phase", function()
    local output = engine.process({}, [[
      local ffi, pgee = require "ffi", require "perigee.ffi"
      local C = ffi.load(os.getenv "PERIGEE_LIB")
      ffi.cdef "int64_t spec_rounds(int, int64_t); int fork(void); int waitpid(int, int *, int); void _exit(int);"
      pgee.C.pgee_threads_set(3)
      local pid = C.fork()
      local ok = C.spec_rounds(3, 10) == 0
      if pid == 0 then C._exit(ok and 0 or 1) end
      local status = ffi.new "int[1]"
      C.waitpid(pid, status, 0)
      io.write(tostring(ok), " ", status[0])
    ]])
    assert.equal("true 0", output)
  end)

  it("after a phase: both have a team", function()
    engine.with_threads(3, function()
      assert.is_true(works())
      assert.equal(0, child(works))
      assert.is_true(works())
    end)
  end)

  it("of a child of a child", function()
    engine.with_threads(3, function()
      assert.is_true(works())
      assert.equal(0, child(function() return works() and child(works) == 0 and works() end))
    end)
  end)

  it("while another thread is in a phase", function()
    engine.with_threads(3, function()
      assert.equal(0, C.spec_busy_start())
      for _ = 1, 10 do
        assert.equal(0, child(works))
      end
      C.spec_busy_end()
    end)
  end)
end)

describe("the number of threads", function()
  after_each(files.clean)

  -- The number that pgee_threads gives in a process with this PERIGEE_THREADS, or the message.
  local function in_force(value)
    return (engine.process({ PERIGEE_THREADS = value }, [[
      local ffi, pgee = require "ffi", require "perigee.ffi"
      local n = ffi.new "int[1]"
      io.write(pgee.C.pgee_threads(n) == 0 and n[0] or ffi.string(pgee.C.pgee_message()))
    ]]))
  end

  it("is PERIGEE_THREADS", function()
    assert.equal("1", in_force "1")
    assert.equal("256", in_force "256")
  end)

  it("is an error if PERIGEE_THREADS is not 1 to 256", function()
    for _, value in ipairs { "0", "257", "-1", "two", "2x", " 2", "1e2", "99999999999999999999" } do
      assert.equal(("PERIGEE_THREADS=%s, expected 1 to 256"):format(value), in_force(value))
    end
  end)

  it("can be set from 1 to 256", function()
    for _, n in ipairs { 0, -1, 257 } do
      assert.equal(P.PGEE_ARGUMENT, P.pgee_threads_set(n))
      assert.equal(("%d threads, expected 1 to 256"):format(n), ffi.string(P.pgee_message()))
    end
  end)

  -- Threads on a machine whose files below / are these, with CPUs 0 to count - 1 in the affinity mask.
  local function machine(count, contents)
    contents.there = ""
    local root = files.folder(contents)
    local cpus = ffi.new("int[?]", count)
    for i = 0, count - 1 do
      cpus[i] = i
    end
    return C.spec_threads_from(root, cpus, count)
  end

  local function siblings(count, name, first)
    local contents = {}
    for cpu = 0, count - 1 do
      contents[("sys/devices/system/cpu/cpu%d/topology/%s"):format(cpu, name)] = first(cpu) .. "\n"
    end
    return contents
  end

  it("is that of physical cores", function()
    local function first(cpu) return ("%d,%d"):format(cpu % 4, cpu % 4 + 4) end
    assert.equal(4, machine(8, siblings(8, "core_cpus_list", first)))
    assert.equal(4, machine(8, siblings(8, "thread_siblings_list", first)))
    assert.equal(3, machine(3, siblings(8, "core_cpus_list", first)))
    local function neighbours(cpu) return ("%d-%d"):format(cpu - cpu % 2, cpu - cpu % 2 + 1) end
    assert.equal(4, machine(8, siblings(8, "core_cpus_list", neighbours)))
  end)

  it("is that of CPUs where the system does not tell cores", function()
    assert.equal(8, machine(8, {}))
    assert.equal(256, machine(1000, {}))
  end)

  it("is capped by the quota of a cgroup, version 2, or of one around it", function()
    local function quota(contents)
      contents["proc/self/cgroup"] = "0::/a/b\n"
      return machine(8, contents)
    end
    assert.equal(8, quota { ["sys/fs/cgroup/a/b/cpu.max"] = "max 100000\n" })
    assert.equal(2, quota { ["sys/fs/cgroup/a/b/cpu.max"] = "250000 100000\n" })
    assert.equal(1, quota { ["sys/fs/cgroup/a/b/cpu.max"] = "50000 100000\n" })
    assert.equal(3, quota { ["sys/fs/cgroup/a/b/cpu.max"] = "max 100000\n", ["sys/fs/cgroup/a/cpu.max"] = "300000 100000\n" })
    assert.equal(4, quota { ["sys/fs/cgroup/cpu.max"] = "400000 100000\n" })
    assert.equal(8, quota { ["sys/fs/cgroup/a/b/cpu.max"] = "nonsense\n" })
  end)

  it("is capped by the quota of a cgroup, version 1", function()
    local function quota(us)
      return machine(8, {
        ["proc/self/cgroup"] = "5:memory:/x\n3:cpu,cpuacct:/a\n2:cpuset:/y\n",
        ["sys/fs/cgroup/cpu/a/cpu.cfs_quota_us"] = us .. "\n",
        ["sys/fs/cgroup/cpu/a/cpu.cfs_period_us"] = "100000\n",
        ["sys/fs/cgroup/cpu/x/cpu.cfs_quota_us"] = "100000\n",
      })
    end
    assert.equal(8, quota(-1))
    assert.equal(5, quota(500000))
  end)

  it("that cannot be started is an error, and later runs with fewer work", function()
    if os.getenv "PERIGEE_HARD" then
      return pending "the sanitizers need memory for a thread too, and end the process"
    end
    local output = engine.process({}, [[
      local ffi, pgee = require "ffi", require "perigee.ffi"
      local C = ffi.load(os.getenv "PERIGEE_LIB")
      ffi.cdef "int64_t spec_rounds(int, int64_t); int spec_limit_memory(int64_t);"
      pgee.C.pgee_threads_set(200)
      assert(C.spec_limit_memory(40 * 2^20) == 0)
      assert(C.spec_rounds(200, 1) == -1)
      io.write(ffi.string(pgee.C.pgee_message()), "; ")
      pgee.C.pgee_threads_set(2)
      io.write(tostring(C.spec_rounds(2, 1) == 0))
    ]])
    assert.matches("^thread %d+ of 200 could not be started: .*; true$", output)
  end)
end)
