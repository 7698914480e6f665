-- The documents: API.md has what the code has; every code block runs, or names options that exist; links lead to files; the
-- chart is that of its table.
--
-- Blocks of ```lua run in a process of their own, in a folder with stand-ins for the files that they name. Blocks without a
-- language are for the shell: recipes and their options are looked up in --help, targets of make in the Makefile. Blocks of
-- ```text and ```console are diagrams and what programs print; the lines of a console block that begin with "$ " are for the
-- shell. A block below <!-- not run: REASON --> is left alone, and these are counted.
local api = require "spec.support.api"
local chart = require "spec.bench.chart"
local files = require "spec.support.files"
local options = require "perigee.options"
local surface = require "spec.support.surface"
local registry = require "perigee.quantize.settings.registry"

local function output_of(command)
  local pipe = assert(io.popen(command .. " 2>&1"))
  local text = pipe:read "*a"
  pipe:close()
  return text
end

local ROOT = output_of("pwd"):match "[^\n]+"

-- Documents that are read, and the blocks that cannot run.
local PAGES, NOT_RUN = {}, 2
for path in output_of("git ls-files -- '*.md' || find . -name '*.md' -not -path './build/*'"):gmatch "[^\n]+" do
  PAGES[#PAGES + 1] = path:gsub("^%./", "")
end

-- The blocks of a page: { language =, text =, line =, not_run = the reason }.
local function blocks_of(path)
  local list, open, mark, number = {}, nil, nil, 0
  for line in io.lines(path) do
    number = number + 1
    if open and line:find "^```%s*$" then
      list[#list + 1], open = open, nil
    elseif open then
      open.text = open.text .. line .. "\n"
    elseif line:find "^```" then
      open, mark = { language = line:match "^```(%w*)", text = "", line = number, not_run = mark, path = path }, nil
    elseif line:find "%S" then
      mark = line:match "^<!%-%- not run: (.*) %-%->$"
    end
  end
  assert(not open, path .. " has a block without an end")
  return list
end

local function all_blocks(language)
  local list = {}
  for _, path in ipairs(PAGES) do
    for _, block in ipairs(blocks_of(path)) do
      list[#list + 1] = block.language == language and not block.not_run and block or nil
    end
  end
  return list
end

describe("lua/API.md", function()
  local world, page, parts

  setup(function()
    world, page = surface.world(), api.read(api.PAGE)
    parts = api.parts(world)
  end)

  teardown(function() world.close() end)

  it("has the functions, options and defaults of the code: luajit spec/support/api.lua renews it", function()
    local renewed, names = api.renewed(page, parts)
    for _, name in ipairs(names) do
      assert.is_not_nil(parts[name], name)
      parts[name] = nil
    end
    assert.same({}, options.names(parts)) -- what the page lacks
    assert.is_true(renewed == page, "PERIGEE_LIB=build/libperigee_spec.so luajit spec/support/api.lua")
  end)

  -- Calls of functions with an option that none has, whose error lists those that there are.
  local PROBES = {
    load = function(o) require("perigee").load("spec/golden/tasks/sentence", o) end,
    open = function(o) require("perigee").open(world.file, o) end,
    stream = function(o) world.model:stream({ "a" }, o) end,
    calibrate = function(o) world.model:calibrate({ "a" }, o) end,
    sweep = function(o) world.q:sweep(o) end,
    select = function(o) world.q:select(o) end,
    save = function(o) world.q:save(world.file, o) end,
    encode = function(o) world.tokenizer:encode("a", nil, o) end,
  }

  -- The names in the first column of the table of the options of a function.
  local function documented(name)
    local rows = page:match("| option of `" .. name .. "`[^\n]*\n|[%-|]+\n(.-)\n\n")
    local list = {}
    for row in (rows or "") :gmatch "[^\n]+" do
      for option in row:match("^|([^|]*)|"):gmatch "`([%w_]+)`" do
        list[#list + 1] = option
      end
    end
    table.sort(list)
    return list
  end

  for name, probe in pairs(PROBES) do
    it("has the options of " .. name, function()
      local ok, message = pcall(probe, { no_such_option = true })
      assert.is_false(ok)
      local listed = tostring(message):match "no option no_such_option, only ([%w_, ]+)"
      assert.is_not_nil(listed, message)
      local known = {}
      for option in listed:gmatch "[%w_]+" do
        known[#known + 1] = option
      end
      assert.same(known, documented(name))
    end)
  end

  it("says what each setting may be", function()
    local rows, found = page:match "| setting | values |\n|[%-|]+\n(.-)\n\n", {}
    for row in rows:gmatch "[^\n]+" do
      found[#found + 1] = row:match "^| `([%w_]+)`"
    end
    assert.same(registry.KEYS, found)
  end)
end)

describe("A document", function()
  for _, path in ipairs(PAGES) do
    it("has links that lead to files: " .. path, function()
      local folder, wrong = path:match "^(.*/)[^/]*$" or "", {}
      for target in api.read(path):gsub("```.-```", ""):gmatch "%]%(([^)#%s]+)[^)]*%)" do
        local file = not target:find "^%a+:" and io.open(folder .. target)
        wrong[#wrong + 1] = not (target:find "^%a+:" or file) and target or nil
        if file then
          file:close()
        end
      end
      assert.same({}, wrong)
    end)
  end

  it("has a chart that is drawn from its table: luajit spec/bench/chart.lua", function()
    assert.is_true(chart.draw(chart.read()) == api.read "kernels/chart.svg")
  end)

  it("says why a block is not run", function()
    local count = 0
    for _, path in ipairs(PAGES) do
      for _, block in ipairs(blocks_of(path)) do
        count = count + (block.not_run and 1 or 0)
        assert.is_true(block.not_run == nil or #block.not_run > 10, path)
      end
    end
    assert.equal(NOT_RUN, count)
  end)
end)

---- Blocks of Lua -----------------------------------------------------------------------------------------------------

-- A folder with what the blocks name: a checkpoint, texts, labelled files.
local function stand_ins()
  local folder = files.folder {
    ["texts.txt"] = "how many people\nall of the water\nthe first of them\n",
    ["dev.tsv"] = "how many people\ta\nall of the water\tb\nwhat people said\ta\nthe water was there\tb\n",
    ["train.tsv"] = "one of them\ta\ntwo of them\tb\n",
    ["texts.jsonl"] = '{"id":1,"text":"how many people"}\n',
  }
  assert(os.execute(("mkdir -p '%s/path/to' && ln -s '%s/spec/golden/tasks/sentence' '%s/path/to/checkpoint'"):format(folder,
    ROOT, folder)) == 0)
  return folder
end

-- What blocks of one page take from the text around them.
local GIVEN = ([[
  local nli = require("perigee").load "ROOT/spec/golden/tasks/nli"
  m = setmetatable({}, { __index = function(_, key)
    return function(_, ...) return nli[key](nli, ...) end
  end })
]]):gsub("ROOT", (ROOT:gsub("%%", "%%%%")))

describe("The Lua blocks of", function()
  local by_page = {}
  for _, block in ipairs(all_blocks "lua") do
    by_page[block.path] = (by_page[block.path] or "") .. block.text
  end
  for path, text in pairs(by_page) do
    it(path .. " run", function()
      local folder = stand_ins()
      local file = assert(io.open(folder .. "/block.lua", "w"))
      file:write(GIVEN, text, '\nio.write "ran to its end\\n"\n')
      file:close()
      local said = output_of(([[cd '%s' && LUA_PATH='%s/lua/?.lua;%s/lua/?/init.lua;;' PERIGEE_CACHE=. luajit block.lua]]):format(
        folder, ROOT, ROOT))
      assert.matches("ran to its end\n$", said)
      assert.is_nil(said:find("false\n", 1, true), said) -- README.md prints whether bits are equal
    end)
  end
  files.clean()
end)

---- Blocks for the shell ----------------------------------------------------------------------------------------------

local helps = {}

-- The options in --help of a recipe.
local function options_of(recipe)
  if not helps[recipe] then
    helps[recipe] = {}
    for option in output_of("luajit " .. recipe .. " --help"):gmatch "%-%-[%w%-]+" do
      helps[recipe][option] = true
    end
  end
  return helps[recipe]
end

local function is_file(path)
  local file = io.open(path)
  return file ~= nil and file:close()
end

local MAKEFILE = api.read "Makefile"

-- The reason why a command is wrong; nil if it is right.
local function wrong_with(command)
  local recipe = command:match "luajit (recipes/[%w_]+%.lua)" or command:match "recipes/perigee"
  local called = command:match "^perigee (%l+)"
  if called then
    recipe = "recipes/" .. called .. ".lua"
  end
  if recipe and not is_file(recipe) then
    return "there is no " .. recipe
  end
  for option in command:gsub("#.*", ""):gmatch "%-%-[%l][%w%-]+" do
    local known = not recipe or recipe:find "cluster" or options_of(recipe)[option]
    if not known and option ~= "--help" then
      return recipe .. " has no option " .. option
    end
  end
  for script in command:gmatch "[%w_/.]+%.[ls][uh]a?%f[^%w]" do
    if script:find "^recipes/" or script:find "^spec/" then
      if not is_file(script) then
        return "there is no " .. script
      end
    end
  end
  for target in command:gsub("#.*", ""):gmatch "make ([%l][%w%-]*)" do
    if not (MAKEFILE:gsub(":", " :")):find("\n[%l%- ]*%f[%l]" .. target:gsub("%-", "%%-") .. "%f[ ][%l%- ]*:") then
      return "there is no target " .. target
    end
  end
end

describe("A shell command of a document", function()
  for _, language in ipairs { "", "sh", "console" } do
    for _, block in ipairs(all_blocks(language)) do
      it(("is right: %s, line %d"):format(block.path, block.line), function()
        for line in block.text:gmatch "[^\n]+" do
          local command = language == "console" and (line:match "^%$ (.*)" or "") or line
          assert.is_nil(wrong_with(command), command)
        end
      end)
    end
  end

  it("of README.md answers with small models in the places of large ones", function()
    local folder = stand_ins()
    local static = ROOT .. "/recipes/quantize.lua"
    local env = ("cd '%s' && PERIGEE_CACHE=. "):format(folder)
    local save = "path/to/checkpoint --calibration texts.txt --save model.safetensors"
    local said = output_of(("%sluajit %s %s"):format(env, static, save))
    assert.matches("quality against FP32", said)
    assert.matches("speed", said)
    local answers = output_of(env .. ("luajit %s/recipes/pipe.lua model.safetensors --keep id < texts.jsonl"):format(ROOT))
    assert.matches('"id":1,"result":', answers)
    assert.matches("settings", output_of(env .. ("luajit %s/recipes/inspect.lua model.safetensors"):format(ROOT)))
    files.clean()
  end)
end)
