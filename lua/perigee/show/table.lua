--- Table: rows of cells as aligned text.
--
--   print(text_table { { "name ", "bytes" }, { "a", "12" }, { "bc", "3" } })
--   -- name  bytes
--   -- a        12
--   -- bc        3
local terminal = require "perigee.show.terminal"

local SHORTEST = 24 -- columns that a cut name keeps at least

-- The width of each column, and of the whole with two spaces between columns.
local function widths_of(rows)
  local width, total = {}, -2
  for _, row in ipairs(rows) do
    for i, cell in ipairs(row) do
      width[i] = math.max(width[i] or 0, terminal.width(cell))
    end
  end
  for _, w in ipairs(width) do
    total = total + w + 2
  end
  return width, total
end

-- The rows without the column of this heading.
local function without(rows, heading)
  local at
  for i, name in ipairs(rows[1]) do
    at = name == heading and i or at
  end
  local copy = {}
  for r, row in ipairs(rows) do
    copy[r] = { unpack(row) }
    table.remove(copy[r], at)
  end
  return copy
end

-- The rows without the optional columns that do not fit, and the widths of the columns that are left.
local function fitted(rows, columns, optional)
  local width, total = widths_of(rows)
  for _, heading in ipairs(columns and optional or {}) do
    if total - math.max(width[1] - SHORTEST, 0) > columns then
      rows = without(rows, heading)
      width, total = widths_of(rows)
    end
  end
  local excess = columns and total - columns or 0
  if excess > 0 then
    width[1] = math.min(width[1], math.max(width[1] - excess, SHORTEST))
  end
  return rows, width
end

--- The rows as text. rows[1] has the headings. A column is aligned left if its heading ends in a space, else right.
--   columns    the width of the terminal; nil: any width. If the table is wider, optional columns are left out; if that is not
--              enough, names in the first column lose their beginnings, down to 24 columns
--   optional   headings of columns that may be left out, the first to go first
return function(rows, columns, optional)
  local width
  rows, width = fitted(rows, columns, optional)
  local lines = {}
  for r, row in ipairs(rows) do
    local cells = {}
    for i, cell in ipairs(row) do
      cell = i == 1 and terminal.tail(cell, width[1]) or cell
      local pad = (" "):rep(width[i] - terminal.width(cell))
      cells[i] = rows[1][i]:sub(-1) == " " and cell .. pad or pad .. cell
    end
    lines[r] = table.concat(cells, "  "):gsub("%s+$", "")
  end
  return table.concat(lines, "\n")
end
