--- Prompts: texts that a task puts before each input. For tasks that take the option `prompt`.
local pgee = require "perigee.ffi"

--- Returns the text of the prompt for a call of `task`, or nil if there is no prompt.
--   given   the option's value: the name of one of the checkpoint's prompts; any other text is the prompt itself; false: no
--           prompt; nil: the checkpoint's default prompt
--   kind    the kind of model whose prompts the task takes, "SentenceTransformer" or "CrossEncoder". The task ignores prompts of
--           a checkpoint that are for the other kind
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
