--- Compare: whether a tensor equals a reference, and if not, where and by how much it differs.
--
--   local report = compare.report "gelu, sequence 2"
--   report:stage("embedding", got, want)        -- F32 tensors of one shape. Add stages in the order of computation
--   report:stage("layer 0", got, want)
--   assert(report:finish())                     -- fails with all stages up to the first that diverges
--
-- Two tensors are close if the largest |got - want| is at most tolerance * max(1, max |want|). NaN is not close to any number.
-- With PERIGEE_PRINT=1 every report is printed.
local tensor = require "perigee.tensor"

local compare = {}

--- The tolerance of FP32 values against those of transformers.
compare.TOLERANCE = 2e-5

-- Calls f(i, j, a, b) for the elements of two tensors of one shape, as rows and columns from 1.
local function pairs_of(a, b, f)
  local p, q, shape = a:numbers(), b:numbers(), a.shape
  local width = shape[2] or 1
  for i = 0, shape[1] - 1 do
    for j = 0, width - 1 do
      f(i + 1, j + 1, p[i * width + j], q[i * width + j])
    end
  end
end

local function same_shape(a, b)
  return table.concat(a.shape, "x") == table.concat(b.shape, "x") and a.dtype == "F32" and b.dtype == "F32"
end

--- The largest difference of two F32 tensors of one shape: { largest =, row =, column =, got =, want =, scale = max |want| }. The
-- largest is infinite where one is NaN, or where only one is infinite.
function compare.difference(got, want)
  local d = { largest = 0, row = 1, column = 1, got = 0, want = 0, scale = 0 }
  pairs_of(got, want, function(i, j, a, b)
    local apart = a == b and 0 or math.abs(a - b)
    if apart ~= apart then
      apart = math.huge
    end
    d.scale = math.abs(b) < math.huge and math.max(d.scale, math.abs(b)) or d.scale
    if apart > d.largest then
      d.largest, d.row, d.column, d.got, d.want = apart, i, j, a, b
    end
  end)
  return d
end

--- Returns the first values of a tensor as text.
function compare.first(t)
  local words = {}
  if #t > 0 then
    local p = t:numbers()
    for i = 1, math.min(4, t.shape[2] or t.shape[1]) do
      words[i] = ("%.6g"):format(p[i - 1])
    end
  end
  return table.concat(words, " ")
end

--- Returns whether the tensors are close, and a line that says so.
function compare.close(got, want, tolerance)
  if not same_shape(got, want) then
    return false, ("%s [%s], expected %s [%s]"):format(
      got.dtype, table.concat(got.shape, "]["), want.dtype, table.concat(want.shape, "]["))
  end
  local d = compare.difference(got, want)
  local bound = (tolerance or compare.TOLERANCE) * math.max(1, d.scale)
  local line = ("%s | largest difference %.2g of %.2g"):format(compare.first(got), d.largest, bound)
  if d.largest <= bound then
    return true, line
  end
  return false, ("%s at [%d][%d]: %.9g, expected %.9g"):format(line, d.row, d.column, d.got, d.want)
end

--- Returns a new tensor of the listed rows of a matrix. Rows count from 0.
function compare.rows(matrix, list)
  local rows = {}
  for i = 1, #list do
    rows[i] = matrix[list[i] + 1]:totable()
  end
  return tensor.from(rows)
end

local Report = {}
Report.__index = Report

function compare.report(title, tolerance)
  return setmetatable({ lines = { title }, tolerance = tolerance, ok = true }, Report)
end

--- Compares one stage. If an earlier stage has diverged, later stages are not compared, because they depend on it.
function Report:stage(name, got, want)
  if not self.ok then
    return
  end
  local ok, line = compare.close(got, want, self.tolerance)
  self.ok = ok
  table.insert(self.lines, ("  %s %-12s %s"):format(ok and " " or "*", name, line))
end

--- The same for lists of integers, such as token ids.
function Report:integers(name, got, want)
  if not self.ok then
    return
  end
  local function text(list)
    local words = {}
    for i = 1, #list do
      words[i] = tostring(list[i])
    end
    return table.concat(words, " ")
  end
  self.ok = text(got) == text(want)
  table.insert(self.lines, ("  %s %-12s %s"):format(self.ok and " " or "*", name,
    self.ok and #want .. " equal" or text(got) .. ", expected " .. text(want)))
end

--- Returns whether all stages were close, and the report as text.
function Report:finish()
  local text = table.concat(self.lines, "\n")
  if os.getenv "PERIGEE_PRINT" then
    print(text)
  end
  return self.ok, text
end

return compare
