--- Prompts: what goes before a text, by name or as it is. For tasks that take the option `prompt`.
local pgee = require "perigee.ffi"

--- The text of the prompt that a caller of `task` gave: the one of that name among the checkpoint's, or the text itself; false is
-- none, nil the checkpoint's default. The result is nil if there is none. kind: of the models whose prompts the task takes, as
-- config_sentence_transformers.json has it; the prompts of another kind are not for this task.
return function(model, given, task, kind)
  if given == false then
    return nil
  elseif given ~= nil and type(given) ~= "string" then
    error(("%s: prompt is %s, expected the name of a prompt, a text, or false"):format(task, pgee.describe(given)), 0)
  end
  local prompts, default, of = model:prompts()
  if of ~= nil and of ~= kind then
    prompts, default = {}, nil
  end
  local text = given and (prompts[given] or given) or default and prompts[default]
  return text ~= "" and text or nil
end
