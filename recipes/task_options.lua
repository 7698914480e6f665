--- The options of tasks on a command line: those that have a help text, with the same names (top_k is --top-k). The values are
-- read once the task is known, because the values that an option accepts may depend on the task.
local common = require "common"
local options = require "perigee.options"

local task_options = {}

-- The help text of an option. If the tasks have different texts, it names the tasks: "With embed: ...; with rerank: ...". count:
-- how many tasks there are.
local function help_of(known, count)
  local parts = {}
  for _, said in ipairs(known.helps) do
    local help = known[said]
    parts[#parts + 1] = #help.tasks == count and said
      or ("with %s: %s"):format(table.concat(help.tasks, ", "), (said:gsub("^%u%l", string.lower):gsub("^A ", "a ")))
  end
  local text = table.concat(parts, "; "):gsub("^with", "With")
  local default = known.entry.default
  local states = default == nil or type(default) == "boolean" or text:find("Default: ", 1, true)
  return states and text or ("%s. Default: %s"):format(text, tostring(default))
end

-- Returns every option by its name, { entry =, tasks = the tasks that have it, helps = the help texts, [text] = { tasks = the
-- tasks whose help text this is } }, and the names in order.
local function collected(by_task)
  local all = {}
  for _, task in ipairs(options.names(by_task)) do
    for name, entry in pairs(by_task[task]) do
      local known = all[name] or { tasks = {}, helps = {} }
      all[name] = known
      if entry.help then
        known.entry = known.entry or entry
        if not known[entry.help] then
          known[entry.help] = { tasks = {} }
          table.insert(known.helps, entry.help)
        end
        table.insert(known[entry.help].tasks, task)
        table.insert(known.tasks, task)
      end
    end
  end
  local names = {}
  for _, name in ipairs(options.names(all)) do
    names[#names + 1] = all[name].entry and name or nil
  end
  return all, names
end

--- The options for common.arguments. by_task: { task = { name = description } }, descriptions as perigee.options has them.
function task_options.described(by_task)
  local all, names = collected(by_task)
  local list, count = {}, #options.names(by_task)
  for i, name in ipairs(names) do
    local known = all[name]
    local entry = known.entry
    list[i] = { name, {
      entry[1], entry[2], help = help_of(known, count), list = entry.list, argname = entry.argname, raw = true,
    } }
  end
  return list
end

--- The options of a task that were given on the command line, nil if there are none. An option that the task does not have is an
-- error.
function task_options.read(args, task, by_task)
  local all, names = collected(by_task)
  local read = {}
  for _, name in ipairs(names) do
    local entry = by_task[task][name]
    if args.given[name] and not entry then
      common.fail("%s has no effect with the task %s, only with %s", common.flag(name), task, table.concat(all[name].tasks, ", "))
    elseif args.given[name] then
      read[name] = entry[1] == "flag" or common.value(name, entry, args[name])
    end
  end
  return next(read) and read or nil
end

return task_options
