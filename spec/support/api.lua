--- The generated parts of lua/API.md. A part stands between <!-- generated: NAME --> and <!-- end -->.
--
--   PERIGEE_LIB=build/libperigee_spec.so luajit spec/support/api.lua       writes them into lua/API.md
--
-- The functions and their texts come from the comments above them, the options of tasks from perigee.tasks, the settings from
-- perigee.settings. spec/docs_spec.lua checks that the page has what this module makes.
package.path = "./?.lua;lua/?.lua;lua/?/init.lua;" .. package.path
require "spec.helper"
local docs = require "perigee.repl.docs"
local options = require "perigee.options"
local perigee = require "perigee"
local surface = require "spec.support.surface"
local registry = require "perigee.quantize.settings.registry"
local values = require "perigee.quantize.settings.values"

local api = { PAGE = "lua/API.md" }

---- Functions ---------------------------------------------------------------------------------------------------------

-- Methods of an artifact that only say that an artifact cannot do this.
local REFUSED = {
  calibrate = true, diff = true, plot = true, quantize = true, recipe = true, save = true, sensitivity = true, set = true,
  sqnr = true, sweep = true, tune = true, undo = true,
}

-- What stands before the name of a function in a call.
local CALLED = {
  ["FP32 model:"] = "model:", ["model:"] = "m:", ["INT8 model:"] = "q:", ["artifact:"] = "a:", ["statistics:"] = "stats:",
  ["packed weight:"] = "w:", ["quantized tensor:"] = "x8:", ["safetensors file:"] = "file:", ["tensor:"] = "t:",
  ["tokenizer:"] = "tokenizer:", ["observer:"] = "observer:", ["workspace:"] = "workspace:",
}

-- "INT8 model:", "set" of "INT8 model:set"; "linear()", "" of a module that is called.
local function split(name)
  local prefix, key = name:match "^(.-[.:])([%w_]+)$"
  return prefix or name, key or ""
end

-- The text about a function whose comment does not stand above it.
local function stands_elsewhere(name)
  local operator = name:match "^plan:(%l+)$"
  if operator then
    return ("Appends this operator. Its fields are those of pgee_%s_args in engine/perigee.h. Returns the plan."):format(operator)
  elseif name == "lines()" or name == "texts()" then
    return docs.header(name == "lines()" and "base.lines" or "evaluate.texts")
  end
end

--- The public functions by prefix: { ["INT8 model:"] = { { key =, call =, text = }, ... in order }, ... }. A function without a
-- comment is an error, because it has no place on the page. What begins with "For modules", "For tasks" and so on is left out.
function api.functions(world)
  local groups = {}
  for name, f in pairs(surface.functions(world)) do
    local prefix, key = split(name)
    local refused = prefix == "artifact:" and REFUSED[key]
    if not surface.INTERNAL[name] and not refused and not name:find "^tasks%..*%.run$" then
      local text, parameters = docs.of_function(f, prefix:sub(-1) == ":")
      text = assert(text or stands_elsewhere(name), name .. " has no comment of three dashes, which lua/API.md needs")
      if not text:find "^For %l+:" and not text:find "^For %l+ of" then
        local called = CALLED[prefix] or (prefix:find "[.:]$" and prefix:find "^perigee" and prefix)
          or prefix:find "[.]$" and "perigee." .. prefix or "perigee." .. prefix:gsub("%(%)$", "")
        groups[prefix] = groups[prefix] or {}
        table.insert(groups[prefix], { key = key, call = called .. key .. parameters, text = text })
      end
    end
  end
  for _, list in pairs(groups) do
    table.sort(list, function(a, b) return a.key < b.key end)
  end
  return groups
end

local function functions_part(groups, prefix)
  local lines = { "```text" }
  for i, f in ipairs(groups[prefix] or error("no functions begin with " .. prefix)) do
    local says_call = f.text:match "^[%w_.]+[.:]([%w_]+)%s*[({]" == f.key -- many comments begin with the call
    lines[#lines + 1] = i > 1 and "" or nil
    lines[#lines + 1] = not says_call and f.call or nil
    for line in (f.text .. "\n"):gmatch "(.-)\n" do
      lines[#lines + 1] = (line == "" or says_call and line == f.text:match "^[^\n]*") and line or "    " .. line
    end
  end
  lines[#lines + 1] = "```"
  return table.concat(lines, "\n")
end

---- Options and settings ----------------------------------------------------------------------------------------------

local function code(text)
  return "`" .. text .. "`"
end

-- A value as Lua text, in code marks.
local function literal(value)
  return code(values.literal("alpha", value))
end

local function values_of(entry)
  if entry[1] == "choice" then
    local names = options.names(entry[2])
    for i, name in ipairs(names) do
      names[i] = code('"' .. name .. '"')
    end
    return table.concat(names, ", ")
  elseif entry[1] == "integer" or entry[1] == "number" then
    local most = entry[3] and entry[3] < math.huge and (" to %g"):format(entry[3]) or entry[2] and " or more" or ""
    return entry[1] .. (entry[2] and entry[2] > -math.huge and (", %g%s"):format(entry[2], most) or "")
  end
  return entry[1] == "flag" and "`true`, `false`" or entry[1] == "other" and "" or entry[1]
end

-- The table of a task's options.
local function task_part(task)
  local lines = { "| option | values | default | |", "|---|---|---|---|" }
  for _, name in ipairs(options.names(task.options)) do
    local entry = task.options[name]
    local help = (entry.help or ""):gsub("%. Default: .*$", ""):gsub("|", "&#124;")
    local default = entry.default ~= nil and literal(entry.default) or ""
    lines[#lines + 1] = ("| `%s` | %s | %s | %s |"):format(name, values_of(entry), default, help)
  end
  return table.concat(lines, "\n")
end

-- The defaults of every setting. Which settings a site may have of its own is in the last column.
local function settings_part()
  local static, dynamic = registry.defaults "static", registry.defaults "dynamic"
  local of_site = {}
  for _, key in ipairs(registry.OF_SITE) do
    of_site[key] = true
  end
  local lines = { "| setting | values | default, static | default, dynamic | of a site |", "|---|---|---|---|---|" }
  for _, key in ipairs(registry.KEYS) do
    local choices = {}
    for i, choice in ipairs(registry.of[key].choices or {}) do
      choices[i] = code(values.literal(key, choice))
    end
    lines[#lines + 1] = ("| `%s` | %s | %s | %s | %s |"):format(key, table.concat(choices, ", "),
      code(values.literal(key, static[key])), code(values.literal(key, dynamic[key])), of_site[key] and "yes" or "")
  end
  return table.concat(lines, "\n")
end

---- The page ----------------------------------------------------------------------------------------------------------

--- Every generated part by its name.
function api.parts(world)
  local parts = { settings = settings_part() }
  local groups = api.functions(world)
  for prefix in pairs(groups) do
    parts["functions " .. prefix] = functions_part(groups, prefix)
  end
  for _, name in ipairs(perigee.tasks.names()) do
    parts["options of " .. name] = task_part(perigee.tasks[name])
  end
  return parts
end

--- The page with its generated parts made anew; the names of parts that the page has, in order.
function api.renewed(text, parts)
  local names = {}
  local renewed = text:gsub("(<!%-%- generated: (.-) %-%->\n).-(<!%-%- end %-%->)", function(head, name, tail)
    names[#names + 1] = name
    return head .. (parts[name] or "there is no such part") .. "\n" .. tail
  end)
  return renewed, names
end

local function read(path)
  local file = assert(io.open(path))
  local text = file:read "*a"
  file:close()
  return text
end
api.read = read

if arg and arg[0] and arg[0]:find "spec/support/api%.lua$" then
  local world = surface.world()
  local text = api.renewed(read(api.PAGE), api.parts(world))
  local file = assert(io.open(api.PAGE, "w"))
  file:write(text)
  file:close()
  world.close()
end

return api
