-- Rules of the layout: how long files may be, which folder may use which, and which Lua modules declare C functions.

-- Paths below folders whose names match a pattern of `find`.
local function find(pattern, ...)
  local pipe = assert(io.popen(("find %s -type f -name '%s'"):format(table.concat({ ... }, " "), pattern)))
  local list = {}
  for path in pipe:lines() do
    list[#list + 1] = path
  end
  pipe:close()
  table.sort(list)
  assert(#list > 0)
  return list
end

local function length_of(path)
  local count = 0
  for _ in io.lines(path) do
    count = count + 1
  end
  return count
end

-- Calls f with each capture of `pattern` in the lines of files. Comments of Lua are left out.
local function each_match(paths, pattern, f)
  for _, path in ipairs(paths) do
    for line in io.lines(path) do
      for found in (path:match "%.lua$" and line:gsub("%-%-.*", "") or line):gmatch(pattern) do
        f(path, found)
      end
    end
  end
end

-- Asserts that every file has at most `limit` lines, or as many as `longer` says.
local function assert_short(paths, limit, longer)
  local wrong = {}
  for _, path in ipairs(paths) do
    local lines, max = length_of(path), longer[path] or limit
    if lines > max then
      wrong[#wrong + 1] = ("%s has %d lines, expected at most %d"):format(path, lines, max)
    end
  end
  assert.same({}, wrong)
end

describe("files are short:", function()
  it("a README has at most 120 lines", function()
    assert_short({ "README.md", "kernels/README.md", "engine/README.md", "lua/README.md", "recipes/README.md", "spec/README.md" },
      120, {})
  end)

  it("a Lua file has at most 350 lines", function()
    assert_short(find("*.lua", "lua", "recipes", "spec/bench", "spec/fuzz", "spec/golden", "spec/support"), 350, {
      ["lua/perigee/quantize/quantized.lua"] = 370, -- one class with all of its methods
      ["spec/support/surface.lua"] = 450, -- a table: every public function with its arguments
    })
  end)

  it("a spec has at most 720 lines", function()
    assert_short(find("*_spec.lua", "spec"), 720, {})
  end)
end)

describe("dependencies point one way:", function()
  -- What #include "..." of a folder may begin with, besides a file of the same folder.
  local INCLUDES = {
    kernels = { "kernels/", "engine/perigee.h" },
    engine = { "engine/", "kernels/" },
    ["recipes/embed"] = { "perigee.h" },
  }

  for folder, allowed in pairs(INCLUDES) do
    it(folder .. " includes " .. table.concat(allowed, " and "), function()
      local wrong = {}
      each_match(find("*.[ch]", folder), '^%s*#%s*include%s+"([^"]+)"', function(path, included)
        local fine = not included:find("/", 1, true) and folder ~= "recipes/embed"
        for _, start in ipairs(allowed) do
          fine = fine or included:sub(1, #start) == start
        end
        if not fine then
          wrong[#wrong + 1] = path .. " includes " .. included
        end
      end)
      assert.same({}, wrong)
    end)
  end

  -- Modules that Lua files of a folder may require: these, and those below them.
  local REQUIRES = {
    ["lua/perigee"] = { "perigee", "bit", "ffi", "jit" },
    recipes = { "perigee", "argparse", "bit", "ffi", "jit", "ngx" }, -- ngx: recipes/serve runs in nginx
  }
  for _, path in ipairs(find("*.lua", "recipes")) do
    table.insert(REQUIRES.recipes, path:match "([^/]+)%.lua$")
  end

  for folder, allowed in pairs(REQUIRES) do
    it(folder .. " requires neither specs nor other libraries", function()
      local wrong = {}
      each_match(find("*.lua", folder), "%f[%w_]require%s*%(?%s*[\"']([%w_%.]+)[\"']", function(path, module)
        local fine = false
        for _, start in ipairs(allowed) do
          fine = fine or module == start or module:sub(1, #start + 1) == start .. "."
        end
        if not fine then
          wrong[#wrong + 1] = path .. " requires " .. module
        end
      end)
      assert.same({}, wrong)
    end)
  end
end)

describe("C functions are declared", function()
  -- The library's functions; two that are needed to find it; system calls; readline.
  local DECLARE = {
    "lua/perigee/ffi.lua", "lua/perigee/find.lua", "lua/perigee/os.lua", "lua/perigee/os/process.lua",
    "lua/perigee/repl/readline.lua",
  }

  it("by " .. table.concat(DECLARE, ", "), function()
    for _, path in ipairs(DECLARE) do
      DECLARE[path] = true
    end
    local wrong = {}
    each_match(find("*.lua", "lua", "recipes"), "ffi%.cdef", function(path)
      wrong[#wrong + 1] = not DECLARE[path] and path .. " declares C functions" or nil
    end)
    assert.same({}, wrong)
  end)
end)
