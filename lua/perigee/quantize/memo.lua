--- Memo: values by key. A value is made once, and released when no pass asks for it any more.
--
-- The key of a value has all that the value depends on. So after a change of settings only the affected values are made again.
-- Values have a release method, because they hold memory that Lua's collector does not see.
local pgee = require "perigee.ffi"

local Memo = {}
Memo.__index = Memo

function Memo.new()
  return setmetatable({ values = {}, used = {}, made = 0 }, Memo)
end

--- The value of `key`; make() makes it the first time. After an interrupt (Ctrl-C) this is an error instead, because making
-- many values takes long.
function Memo:get(key, make)
  local value = self.values[key]
  if value == nil then
    if pgee.C.pgee_interrupted() ~= 0 then
      error("interrupted", 0)
    end
    value = make()
    self.values[key] = value
    self.made = self.made + 1
  end
  self.used[key] = true
  return value
end

local function sweep(self)
  for key, value in pairs(self.values) do
    if not self.used[key] then
      self.values[key] = nil
      value:release()
    end
  end
end

--- Runs f, and releases the values that f did not ask for. If f fails, the values from before stay and the error is raised again.
function Memo:renew(f)
  local before = self.used
  self.used = {}
  local ok, result = pcall(f)
  if not ok then
    self.used = before
  end
  sweep(self)
  if not ok then
    error(result, 0)
  end
  return result
end

--- A value that is there already, or nil.
function Memo:peek(key)
  return self.values[key]
end

--- A temporary memo: it takes values from this memo, and keeps new ones to itself until it is released.
function Memo:aside()
  local own, lender = Memo.new(), self
  function own.peek(_, key)
    return own.values[key] or lender:peek(key)
  end
  function own.get(_, key, make)
    return lender:peek(key) or Memo.get(own, key, make)
  end
  return own
end

--- Releases everything.
function Memo:release()
  self.used = {}
  sweep(self)
end

return Memo
