--- The registry of endpoints. An entry has
--   path, method, summary
--   request    the schema of its body (schema.lua); nil: it takes none
--   response   the schema of its answer; nil: it is no JSON
--   handle     function(context) -> a table or JSON text, and its content type
--   form       the form of its errors: "tei" (the default), "openai", "cohere"
--   other      a second path of it
--   open       whether it needs no API key
-- nginx's locations, /openapi.json and the specs derive from it.
local routes = {}

local by_path, list = {}, {}

local function add(route)
  by_path[route.path] = by_path[route.path] or {}
  by_path[route.path][route.method] = route
  list[#list + 1] = route
  by_path[route.other or route.path] = by_path[route.path]
end

for _, module in ipairs { "tei", "openai", "cohere", "tasks", "lines", "pages" } do
  for _, route in ipairs(require("serve." .. module)) do
    add(route)
  end
end

--- The endpoints of a path by their methods, or nil.
function routes.at(path)
  return by_path[path]
end

--- The methods of endpoints, in words.
function routes.methods(methods)
  local names = {}
  for name in pairs(methods) do
    names[#names + 1] = name
  end
  table.sort(names)
  return table.concat(names, " and ")
end

--- All endpoints in order.
routes.list = list

return routes
