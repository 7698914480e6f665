--- Locale: a locale with a decimal comma and with points between groups of three digits. `localedef` makes it.
local files = require "spec.support.files"
local models = require "spec.support.models"

local locale = {}

local COMMA = [[
comment_char %
escape_char /
LC_NUMERIC
decimal_point ","
thousands_sep "."
grouping 3;3
END LC_NUMERIC
]]

--- Returns a folder for LOCPATH that has the locale "comma", or nil if this system cannot make one. files.clean() removes it.
function locale.folder()
  local folder = files.folder { comma = COMMA }
  os.execute(("cd %s && mkdir made && localedef -c -i comma ./made/comma > /dev/null 2>&1"):format(folder))
  return models.exists(folder .. "/made/comma/LC_NUMERIC") and folder .. "/made" or nil
end

return locale
