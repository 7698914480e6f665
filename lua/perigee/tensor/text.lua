--- How a tensor prints: type, shape and the first rows and columns.
local pgee = require "perigee.ffi"
local shape = require "perigee.tensor.shape"
local C = pgee.C

local ROWS, COLUMNS = 6, 8 -- that are printed at most

local function cells_of(t, count)
  local cells = {}
  for i = 1, math.min(#t, count) do
    local v = t[i]
    cells[i] = type(v) == "number" and ("%.4g"):format(v) or tostring(v):gsub("LL$", "")
  end
  return cells
end

-- One line for each row that is shown, all cells as wide as the widest.
local function lines_of(t)
  if #t == 0 or shape.width(t.handle) == 0 then
    return {}
  end
  local rows = C.pgee_tensor_ndim(t.handle) == 1 and { cells_of(t, COLUMNS) } or {}
  local columns = rows[1] and #t
  for i = 1, rows[1] and 0 or math.min(#t, ROWS) do
    rows[i] = cells_of(t[i], COLUMNS)
    columns = #t[i]
  end
  local wide = 0
  for _, cells in ipairs(rows) do
    for _, cell in ipairs(cells) do
      wide = math.max(wide, #cell)
    end
  end
  local lines = {}
  for i, cells in ipairs(rows) do
    for j, cell in ipairs(cells) do
      cells[j] = (" "):rep(wide - #cell) .. cell
    end
    lines[i] = "  " .. table.concat(cells, "  ") .. (columns > COLUMNS and "  …" or "")
  end
  return lines
end

--- The tensor as text.
return function(t)
  local h = t.handle
  if h == nil then
    return "tensor (released)"
  end
  local lines = { "tensor " .. shape.title(h) }
  if C.pgee_tensor_data(h) == nil then
    lines[1] = lines[1] .. " (a plan's buffer)"
  elseif C.pgee_tensor_ndim(h) <= 2 then
    for _, line in ipairs(lines_of(t)) do
      lines[#lines + 1] = line
    end
    if C.pgee_tensor_ndim(h) == 2 and #t > ROWS then
      lines[#lines + 1] = "  …"
    end
  end
  return table.concat(lines, "\n")
end
