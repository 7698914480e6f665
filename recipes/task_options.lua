--- The options of tasks on a command line: those of perigee.tasks that have a help text, under the same names (top_k is --top-k).
local options = require "perigee.options"
local perigee = require "perigee"

local task_options = {}

-- Every option by its name: { entry, tasks = the tasks that have it, also = other names for it }.
local function described()
  local list, all = {}, {}
  for task, entry in pairs(perigee.tasks) do
    for name, option in pairs(entry.options) do
      local known = all[option.same or name] or { tasks = {}, also = {} }
      all[option.same or name] = known
      if option.same then
        known.also[name] = true
      elseif option.help then
        known.entry = option
        table.insert(known.tasks, task)
      end
    end
  end
  for name, known in pairs(all) do
    table.sort(known.tasks)
    known.name = name
    list[#list + 1] = known.entry and known or nil
  end
  table.sort(list, function(a, b) return a.name < b.name end)
  return list
end

local function spelled(name)
  return "--" .. name:gsub("_", "-")
end

--- The names of an option that takes several. One that is given once has them with commas between them; one that is given
-- several times has a name each time, which may have a comma. Spaces around a name are left out.
function task_options.names(given)
  local list, seen = {}, {}
  for name in (#given == 1 and given[1] .. "," or ""):gmatch "([^,]*)," do
    list[#list + 1] = name
  end
  local names = {}
  for _, name in ipairs(#given == 1 and list or given) do
    name = name:match "^%s*(.-)%s*$"
    names[#names + 1] = name ~= "" and not seen[name] and name or nil
    seen[name] = true
  end
  return names
end

local function is_list(entry)
  return entry[1] == "texts" or entry.list
end

-- Reads a number, for argparse.
local function number_of(option)
  return function(text)
    return tonumber(text), ("%s is %s, expected a number"):format(option, text)
  end
end

--- Adds the options to a parser of argparse.
function task_options.add(parser)
  local count = #options.names(perigee.tasks)
  for _, known in ipairs(described()) do
    local entry, names, help = known.entry, spelled(known.name), known.entry.help
    for also in pairs(known.also) do
      names = names .. " " .. spelled(also)
    end
    if #known.tasks < count then
      help = ("With %s: %s"):format(table.concat(known.tasks, ", "), (help:gsub("^%u%l", string.lower)))
    end
    if is_list(entry) then
      help = help .. ". Commas are between them; or repeat the option for each, which may then have commas"
    end
    local option = entry[1] == "flag" and parser:flag(names, help) or parser:option(names, help)
    option:target(known.name)
    if entry[1] == "choice" then
      option:choices(options.names(entry[2]))
    elseif entry[1] == "integer" or entry[1] == "number" then
      option:convert(number_of(spelled(known.name)))
    elseif is_list(entry) then
      option:count "*":argname("<A,B>")
    end
  end
end

--- The options of a task that the command line gives, nil if it gives none. One that the task does not have is an error.
function task_options.read(args, task)
  local read = {}
  for _, known in ipairs(described()) do
    local value = args[known.name]
    if is_list(known.entry) then
      value = value and #value > 0 and task_options.names(value) or nil
    end
    if value ~= nil and not perigee.tasks[task].options[known.name] then
      error(("%s is an option of %s, not of %s"):format(spelled(known.name), table.concat(known.tasks, ", "), task), 0)
    end
    read[known.name] = value
  end
  return next(read) and read or nil
end

return task_options
