-- Surroundings that a process does not control: /proc that is not mounted, a working directory with a long path, names that
-- lead to a pipe or a device where a file is expected, and a working directory that changes. No call may hang.
local ffi = require "ffi"
local files = require "spec.support.files"
local models = require "spec.support.models"
local find = require "perigee.find"
local system = require "perigee.os"
local selection = require "perigee.graph.passes.select"

pcall(ffi.cdef, "int chdir(const char *path);")

local SECONDS = 60 -- until a process counts as one that hangs

local top, dir

-- Runs a script of bash in the spec's folder. Returns what it wrote, both streams, and its status: 124 if it hung.
local function bash(script)
  return files.bash(([[
    TOP='%s'; cd '%s'
    export LUA_PATH="$TOP/lua/?.lua;$TOP/lua/?/init.lua;;"
    export EMBEDDER="$TOP/%s"
    PIPE="luajit $TOP/recipes/pipe.lua --model $EMBEDDER --threads 1 --task embed --vectors base64"
    %s]]):format(top, dir, models.path "embedder", script), SECONDS)
end

local function put(name, text)
  files.put(dir .. "/" .. name, text)
end

describe("The surroundings of a process", function()
  if os.getenv "PERIGEE_HARD" then
    return pending "many processes, in which the library does what it does in other specs"
  end

  before_each(function()
    top, dir = files.top(), files.folder {}
    put("in", '{"text":"one"}\n{"text":"two"}\n')
  end)
  after_each(files.clean)

  local function has_no_proc()
    return os.execute "unshare -m mount -t tmpfs none /proc 2> /dev/null" == 0
  end

  it("may have no /proc: a file is written, and explain says what it can", function()
    if not has_no_proc() then
      return pending "this process may not mount anything over /proc"
    end
    local text, status = bash [[
      cat > explain.lua <<'END'
        local perigee = require "perigee"
        local q = perigee.load(arg[1]):quantize { activations = "dynamic", pages = "huge" }
        print(q:explain())
        print(q:memory().huge)
END
      unshare -m sh -c "mount -t tmpfs none /proc && ls /proc && $PIPE --output out --input in && wc -l < out && \
        luajit explain.lua $EMBEDDER"]]
    assert.equal(0, status, text)
    assert.matches("^2\n", text)
    assert.matches("without /proc the kernel does not say how many it gave", text, 1, true)
    assert.matches("\nnil\n$", text)
  end)

  it("may have a working directory whose path is longer than any path may be", function()
    local text, status = bash [[
      name=$(printf 'd%.0s' $(seq 240))
      for i in $(seq 20); do mkdir $name; cd $name; done
      printf '{"text":"one"}\n' > in
      $PIPE --output out --input in && wc -l < out
      $PIPE --output again --resume < in && wc -l < again]]
    assert.same({ "1\n1\n", 0 }, { text, status })
    -- This saves an artifact in such a folder, and replaces an artifact through a link.
    text, status = bash [[
      name=$(printf 'd%.0s' $(seq 240))
      for i in $(seq 20); do cd $name; done
      cat > save.lua <<'END'
        local perigee = require "perigee"
        local q = perigee.load(arg[1]):quantize { activations = "dynamic" }
        for _, name in ipairs { "artifact", "artifact", "link" } do
          q:save(name)
        end
        print(#perigee.open("artifact"):embed("a"))
END
      ln -s artifact link
      luajit save.lua $EMBEDDER && test -L link]]
    assert.same({ "32\n", 0 }, { text, status })
  end)

  it("may have pipes and devices where a checkpoint has files: each is refused by its name", function()
    for _, name in ipairs {
      "config.json", "model.safetensors", "tokenizer.json", "vocab.txt", "tokenizer_config.json", "special_tokens_map.json",
      "modules.json", "1_Pooling/config.json", "sentence_bert_config.json", "config_sentence_transformers.json",
    } do
      for _, made in ipairs { "mkfifo", "ln -s /dev/zero" } do
        local text, status = bash(([[
          cp -r $EMBEDDER model && rm -f model/%s && %s model/%s
          luajit $TOP/recipes/pipe.lua --model model --threads 1 --task embed --vectors base64 --input in
        ]]):format(name, made, name))
        assert.is_true(status == 1 or status == 0, ("%s %s: status %d: %s"):format(made, name, status, text))
        assert.matches(name, text, 1, true)
        assert.is_truthy(text:find "a named pipe, expected a file" or text:find "a character device, expected a file"
          or text:find "is not a regular file", text)
        bash "rm -r model"
      end
    end
  end)

  it("may have a pipe where an answer's file is to be", function()
    local text, status = bash "mkfifo out.part; $PIPE --input in --output out"
    assert.same({ "error: cannot write 'out.part': it is a named pipe, expected a file\n", 1 }, { text, status })
    text, status = bash [[
      mkfifo pipe artifact; $PIPE --input in --output pipe
      luajit -e 'require("perigee").load(os.getenv "EMBEDDER"):quantize({ activations = "dynamic" }):save "artifact"']]
    assert.matches("cannot write 'pipe': it is a named pipe, expected a file", text, 1, true)
    assert.matches("artifact': it is not a regular file, expected a file", text, 1, true)
    assert.equal(1, status)
  end)

  it("may have anything where selected kernels are kept: a warning, and it stays", function()
    local script = [[
      cat > select.lua <<'END'
        local perigee = require "perigee"
        print(#perigee.load(arg[1]):quantize({ activations = "dynamic" }):embed "a")
END
      export PERIGEE_CACHE=cache
      rm -rf cache; mkdir cache; %s
      luajit select.lua $EMBEDDER; %s]]
    for made, kind in pairs { ["mkfifo cache/select.json"] = "a named pipe", ["mkdir cache/select.json"] = "a directory",
      ["ln -s /dev/full cache/select.json"] = "a character device" } do
      local text, status = bash(script:format(made, "[ ! -f cache/select.json ]"))
      assert.equal(0, status, text)
      assert.matches("32\n$", text)
      if text ~= "32\n" then -- where there is nothing to select, nothing is read
        assert.matches(("select.json': it is %s, expected a file"):format(kind), text, 1, true)
      end
    end
    for _, odd in ipairs {
      "", "[]", "null", '{"format":2,"machines":[[[1]]]}', '{"format":2,"machines":{"a":{"b":{"kernel":"native"}}}}',
      '{"format":2,"machines":{"a":{"b":{"kernel":"native","gain":1e999}}}}', '{"format":2,"machines":{"a":null}}',
      '{"format":2,"machines":"x"}', '{"format":[1],"machines":{}}', ("["):rep(5000), '{"format":2,"machines":[{}]}', "\255",
    } do
      local text, status = bash(script:format(("printf '%%s' '%s' > cache/select.json"):format(odd), "true"))
      assert.equal(0, status, text)
      assert.matches("32\n$", text)
      assert.is_nil(text:find("%.lua:"), text)
    end
  end)

  it("may have any characters in the path of the modules", function()
    for _, name in ipairs { "a?b", "a;b", "a?/x;?.lua", "a%sb", "a\255b" } do
      local text, status = bash(([[
        mkdir -p '%s' && cp -r $TOP/lua $TOP/recipes '%s' && unset LUA_PATH && cd '%s'
        luajit recipes/pipe.lua --model $EMBEDDER --task embed --input ../in --quiet --threads 1 --output out && wc -l < out
        luajit recipes/inspect.lua --help > /dev/null && luajit recipes/perigee --version > /dev/null && echo found
      ]]):format(name, name, name):gsub("%.%./in", '"$OLDPWD/in"'))
      assert.same({ "2\nfound\n", 0 }, { text, status }, name)
    end
  end)

  it("may change its directory: what the environment named stays where it was", function()
    ffi.C.setenv("PERIGEE_CACHE", "a/b", 1)
    local before = selection.path()
    assert(ffi.C.chdir(dir) == 0)
    local after = selection.path()
    local here = find.absolute "."
    assert(ffi.C.chdir(find.started) == 0)
    ffi.C.setenv("PERIGEE_CACHE", find.started .. "/build/cache", 1)
    assert.equal(before, after)
    assert.equal(find.started .. "/a/b/select.json", after)
    assert.not_equal(find.started, here)
    local text, status = bash [[
      cp -r $TOP/lua . ; mkdir elsewhere
      cat > later.lua <<'END'
        local ffi = require "ffi"
        local perigee = require "perigee" -- by a relative path, and most of it later
        ffi.cdef "int chdir(const char *path);"
        assert(ffi.C.chdir "elsewhere" == 0)
        print(#perigee.load(arg[1]):quantize({ activations = "dynamic" }):embed "a")
END
      LUA_PATH='lua/?.lua;lua/?/init.lua' luajit later.lua $EMBEDDER]]
    assert.same({ "32\n", 0 }, { text, status })
  end)
end)

describe("system.stat", function()
  after_each(files.clean)

  it("says what a path leads to", function()
    local path = files.write "12345"
    local a = system.stat(path)
    assert.same({ "a file", true, 5 }, { a.kind, a.regular, a.bytes })
    assert(os.execute(("ln %s %s.2"):format(path, path)) == 0)
    assert.equal(a.id, system.stat(path .. ".2").id)
    os.remove(path .. ".2")
    assert.not_equal(a.id, system.stat(files.write "").id)
    assert.equal("a directory", system.stat("/tmp").kind)
    assert.equal("a character device", system.stat("/dev/null").kind)
    assert.same({ nil, true }, { system.stat "/nowhere/x" })
    assert.same({ nil, true }, { system.stat(path .. "/x") })
    assert.same({ nil, false }, { system.stat(-1) })
  end)
end)
