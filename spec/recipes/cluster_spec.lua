-- recipes/cluster: a file through many workers, some of which are killed: complete, in order, nothing twice. Spark has a target
-- of its own, `make spark`.
local files = require "spec.support.files"
local models = require "spec.support.models"

local dir, top

-- A luajit that is killed without a warning, and the processes of $GROUP with it, once it has written something, the first time
-- that it is to make one of the files that $VICTIMS names.
local KILLER = [[#!/bin/sh
output=-
for word; do
  [ "$last" != --output ] || output=$word
  last=$word
done
case " $VICTIMS " in
*" $output "*)
  if mkdir "killed.$output" 2> /dev/null; then
    export PART="$output.part" LUA_INIT="@bin/dies.lua"
  fi ;;
esac
exec "$REAL" "$@"
]]

-- It looks every thousand instructions: a process that looked from outside might come too late.
local DIES = [[
jit.off()
local ffi = require "ffi"
ffi.cdef "int kill(int pid, int signal); int raise(int signal);"
debug.sethook(function()
  local part = io.open(os.getenv "PART")
  if part and part:seek "end" > 0 then
    if os.getenv "GROUP" then
      ffi.C.kill(-os.getenv "GROUP", 9)
    end
    ffi.C.raise(9)
  end
  if part then
    part:close()
  end
end, "", 1000)
]]

-- Runs a script in the spec's folder, which has a file `in` and `want`, its answers. Returns what it wrote and its status.
local function bash(script)
  return files.bash(([[
    cd '%s'
    export HOME=$PWD VICTIMS= REAL=$(command -v luajit); PATH=$PWD/bin:$PATH
    CLUSTER=%s/recipes/cluster
    OPTIONS="%s/%s --vectors base64 --keep id --window 2"
    %s]]):format(dir, top, top, models.path "embedder", script), 200)
end

local parallel = os.execute "command -v parallel > /dev/null" == 0

describe("cluster", function()
  local list, want = {}, nil
  for i = 1, 4000 do
    list[i] = ('{"id":%d,"text":"text %d%s"}'):format(i, i, (" some words"):rep(i % 20))
  end
  if os.getenv "PERIGEE_HARD" then
    return pending "the same scripts as without sanitizers"
  end
  before_each(function()
    top = files.top()
    dir = files.folder { ["bin/luajit"] = KILLER, ["bin/dies.lua"] = DIES, ["in"] = table.concat(list, "\n"), want = want }
    assert.are.same({ "", 0 }, { bash "chmod +x bin/luajit; [ -e want ] || $REAL $CLUSTER/../pipe.lua $OPTIONS < in > want" })
    want = want or models.read(dir .. "/want")
  end)
  after_each(files.clean)

  it("parallel.sh: workers that are killed are started again", function()
    if not parallel then
      return pending "there is no GNU parallel"
    end
    local text, status = bash [[
      VICTIMS="out.1 out.2 out.4"
      PARALLEL="--jobs 2" $CLUSTER/parallel.sh 4 in out $OPTIONS 2> log || cat log
      cmp want out && ls -d killed* out*]]
    assert.are.same({ "killed.out.1\nkilled.out.2\nkilled.out.4\nout\n", 0 }, { text, status })
  end)

  it("parallel.sh: what was stopped goes on", function()
    if not parallel then
      return pending "there is no GNU parallel"
    end
    local text, status = bash [[
      export PARALLEL="--jobs 1" VICTIMS=out.2
      (setsid --wait bash -c 'GROUP=$$ exec "$@"' - $CLUSTER/parallel.sh 4 in out $OPTIONS; echo $?) 2> /dev/null
      ls out.1 out.2.part out.3 out.4 2> /dev/null
      $CLUSTER/parallel.sh 4 in out $OPTIONS && cmp want out && ls -d out*
      $CLUSTER/parallel.sh 4 in out $OPTIONS && echo nothing to do]]
    assert.are.same({ "137\nout.1\nout.2.part\nout\nnothing to do\n", 0 }, { text, status })
  end)

  it("slurm.sh: a task that is killed goes on when it is queued again", function()
    local text, status = bash [[
      VICTIMS=out.2
      export PERIGEE_RECIPES=$CLUSTER/.. SLURM_CPUS_PER_TASK=1 SLURM_ARRAY_TASK_ID
      task() { SLURM_ARRAY_TASK_ID=$1; $CLUSTER/slurm.sh 3 in out $OPTIONS; echo $?; }
      task 1; task 2; task 3
      $CLUSTER/join.sh 3 in out
      task 2; task 1
      $CLUSTER/join.sh 3 in out && cmp want out && ls -d killed* out*]]
    text = text:gsub("[^\n]*Killed[^\n]*\n", "")
    assert.are.equal("0\n137\n0\njoin.sh: out.2 is not there yet\n0\n0\nkilled.out.2\nout\n", text)
    assert.are.equal(0, status)
  end)

  it("join.sh counts", function()
    local text, status = bash "head -n 5 want > out.1; head -n 7 want > out.2; $CLUSTER/join.sh 2 in out"
    assert.are.same({ "join.sh: in has 4000 lines, the parts have 12 answers\n", 1 }, { text, status })
    assert.are.same({ "usage: join.sh N INPUT OUTPUT [OPTION OF pipe.lua...]\n", 2 }, { bash "$CLUSTER/join.sh 0 in out" })
    assert.are.same({ "usage: join.sh N INPUT OUTPUT [OPTION OF pipe.lua...]\n", 2 }, { bash "$CLUSTER/join.sh many in out" })
  end)

  it("says how many lines have no answer, and fails if those are too many", function()
    local text, status = bash [[
      export PERIGEE_RECIPES=$CLUSTER/.. SLURM_ARRAY_TASK_ID
      (head -n 3 in; echo bad; echo '{"a":{"line":1,"error":"x"},"text":1}'; tail -n 1 in) > some; echo >> some
      for share in "" "--max-errors 0.7" "--max-errors=0.3"; do
        for SLURM_ARRAY_TASK_ID in 1 2; do $CLUSTER/slurm.sh 2 some out $OPTIONS --keep id,a $share || break; done
        $CLUSTER/join.sh 2 some out $OPTIONS $share; echo $?
        ls -d out*; rm -f out*
      done 2>&1]]
    local said = 'join%.sh: 2 of 6 lines have no answer; the first: line 4:{"line":1,"error":"no valid JSON[^\n]*\n0\nout\n'
    assert.equal(2, select(2, text:gsub(said, "")), text)
    assert.matches("error: 2 of 3 lines have no answer, more than --max-errors 0.3 allows", text, 1, true)
    assert.matches("join.sh: out.2 is not there yet\n1\n", text, 1, true)
    assert.are.equal(0, status)
    text = bash [[
      rm -f out.*; head -n 3 want > out.1; echo '{"line":1,"error":"x"}' > out.2; head -n 4 in > some
      $CLUSTER/join.sh 2 some out --max-errors 0.2; echo $?; ls -d out*; $CLUSTER/join.sh 2 some out --max-errors 0.25; echo $?
      rm out; echo '{"id":1,"line":7,"error":"x \"y\""}' > out.1; head -n 1 in > some
      $CLUSTER/join.sh 1 some out; echo $?; ls out*]]
    local one = 'join.sh: 1 of %d lines have no answer; the first: line %s\n'
    local refused = "join.sh: that is more than --max-errors allows (%s); out is not made, the parts stay\n1\n"
    assert.are.equal(one:format(4, '4:{"line":1,"error":"x"}') .. refused:format "0.2" .. "out.1\nout.2\n"
      .. one:format(4, '4:{"line":1,"error":"x"}') .. "0\n" .. one:format(1, '1:{"id":1,"line":7,"error":"x \\"y\\""}')
      .. refused:format "not all lines" .. "out.1\n", text)
  end)

  it("a worker that cannot answer at all fails: nothing is taken for its answers", function()
    if not parallel then
      return pending "there is no GNU parallel"
    end
    local text, status = bash [[
      export PERIGEE_ISA=other
      PARALLEL="--jobs 2" $CLUSTER/parallel.sh 2 in out $OPTIONS; s=$?; ls out out.1 out.2; exit $s]]
    assert.are.equal(2, status, text)
    assert.matches("error: [^\n]*PERIGEE_ISA=other, expected", text)
    assert.equal(3, select(2, text:gsub("cannot access 'out", "")))
    text, status = bash "rm -f out*; $CLUSTER/shard.sh 1 2 in out $OPTIONS --vectors npy; s=$?; ls out* 2> /dev/null; exit $s"
    assert.are.equal(2, status)
    assert.matches("shard.sh: parts are joined line by line, and a .npy has no lines; expected --vectors base64", text, 1, true)
  end)

  it("does nothing where the whole is there, and leaves nothing behind", function()
    local text, status = bash [[
      export PERIGEE_RECIPES=$CLUSTER/.. SLURM_ARRAY_TASK_ID=1
      touch out; $CLUSTER/slurm.sh 3 in out $OPTIONS; $CLUSTER/join.sh 3 in out; ls -s out*; rm out
      $CLUSTER/slurm.sh 3 nowhere out $OPTIONS 2> /dev/null; ls -d out* 2> /dev/null; echo
      head -n 2 in > '"a" b'; $CLUSTER/slurm.sh 1 '"a" b' 'c d' $OPTIONS; $CLUSTER/join.sh 1 '"a" b' 'c d'; ls c*
      head -n 2 want | cmp 'c d']]
    assert.are.same({ "0 out\n\nc d\n", 0 }, { text, status })
  end)

  it("parallel.sh: refuses what GNU parallel would change", function()
    if not parallel then
      return pending "there is no GNU parallel"
    end
    local text, status = bash "$CLUSTER/parallel.sh 2 in out $OPTIONS --prompt '{}: '; ls -d out* 2> /dev/null"
    assert.matches("^parallel.sh: GNU parallel would replace what stands in braces", text)
    assert.are.equal(2, status)
    text, status = bash "$CLUSTER/parallel.sh 0 in out < /dev/null"
    assert.are.same({ "usage: parallel.sh N INPUT OUTPUT [MODEL] [OPTION OF pipe.lua...]\n", 2 }, { text, status })
  end)
end)
