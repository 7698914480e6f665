-- Calls every public function with odd values, one odd argument at a time. A call must work, or its error must blame the line
-- that called the function and say what was given and what was expected. A new public function must be on one of the two lists
-- of spec/support/surface.lua, or this spec fails.
local ffi = require "ffi"
local perigee = require "perigee"
local pgee = require "perigee.ffi"
local surface = require "spec.support.surface"
local it = os.getenv "PERIGEE_HARD" and pending or it

local itself, nested = {}, {}
itself[1] = itself
nested[1] = { nested }

local failing = setmetatable({}, {
  __index = function() error "a metamethod's own" end, __tostring = function() error "a metamethod's own" end,
  __call = function() error "a metamethod's own" end, __eq = function() error "a metamethod's own" end,
})

local function released()
  local t = perigee.tensor.from { 1, 2 }
  t:release()
  return t
end

local ODD = { -- nil is the first
  false, true, 0, -1, 0.5, 1.5, 0 / 0, 1 / 0, -1 / 0, 1e300, 2 ^ 31, 2 ^ 53, "", "nonsense", "a\0b", "\xff\xfe", ("x"):rep(1e5),
  {}, { 1, 2 }, { {} }, { 1, nil, 3 }, { 1, "a", {} }, { foo = 1 }, { [0.5] = 1 }, { [{}] = 1 }, itself, nested, failing,
  function() end, function() error "a function's own" end, coroutine.create(print), io.stdout, ffi.new "int[4]",
  ffi.new "double[2]", 5LL, ffi.cast("void *", nil), ffi.typeof "int", released(), perigee.tensor.from { { 1, 2 } },
  perigee.plan.new(),
}

-- Texts in errors of Lua itself or of the FFI, and places inside the modules: an error about an argument must have none of
-- these.
local INSIDE = {
  "attempt to ", "bad argument", "cannot convert", "has no member", "metamethod$", "stack overflow", "assertion failed",
  "table index is", "lua/perigee/", "not enough memory", "table overflow", "table: 0x", "invalid order function",
}

-- Texts that an error may have instead of "expected".
local SAYS = {
  "expect", "was released", "has no ", "is missing", "cannot ", "is outside", "colon", "own", "takes ", "no lines", "no ",
  "only ", "not ", "has rows", "empty", "must", "at most", "of the", "more than", "matches", "is ", "need",
}

-- The fault of an error message; nil if it has none. line: the place of the call, with which the message must begin.
local function fault_of(message, line)
  if type(message) ~= "string" then
    return "it is no text"
  end
  for _, inside in ipairs(INSIDE) do
    if message:find(inside) then
      return "it comes from inside"
    end
  end
  if message:find "a metamethod's own" or message:find "a function's own" then
    return nil
  elseif message:sub(1, #line) ~= line then
    return "it does not blame the caller"
  end
  for _, word in ipairs(SAYS) do
    if message:find(word, #line, true) then
      return nil
    end
  end
  return "it does not say what was expected"
end

-- f(...) from a line of our own.
local LINE = ("spec/lua/arguments_spec.lua:%d: "):format(debug.getinfo(1, "l").currentline + 2)
local function call(f, given, count)
  local result, second = f(unpack(given, 1, count))
  return result, second
end

local function described(value)
  if rawequal(value, failing) then
    return "a table whose metamethods fail"
  end
  return type(value) == "string" and #value > 40 and "a long text" or pgee.describe(value)
end

-- Calls f with one odd argument, or odd option, and adds what is wrong to the faults.
local function try(faults, name, what, odd, f, given, count)
  if os.getenv "PERIGEE_PRINT" then
    io.stderr:write(("%s, %s = %s\n"):format(name, what, described(odd)))
  end
  local ok, message = pcall(call, f, given, count)
  local fault = not ok and fault_of(message, LINE)
  local kind = ("%s %s %s"):format(name, what, fault)
  if fault and not faults[kind] then -- one of each kind
    faults[kind] = true
    faults[#faults + 1] = ("%s, %s = %s: %s: %s"):format(name, what, described(odd), fault, tostring(message):sub(1, 300))
  end
end

-- Calls an entry's function with each odd value as each of its arguments, then as each option in its last argument.
local function sweep(faults, name, entry)
  local given, names = entry.arguments()
  local count = entry.count or #given
  for k = 0, #ODD do
    for i = 1, count do
      given = entry.arguments()
      given[i] = ODD[k]
      try(faults, name, "argument " .. i, ODD[k], entry.f, given, count)
    end
    for _, option in ipairs(k > 0 and names or {}) do
      given = entry.arguments()
      local copy = {}
      for key, value in pairs(given[count]) do
        copy[key] = value
      end
      copy[option] = ODD[k]
      given[count] = copy
      try(faults, name, option, ODD[k], entry.f, given, count)
    end
  end
end

describe("odd arguments", function()
  local world

  lazy_setup(function()
    world = surface.world()
  end)

  lazy_teardown(function()
    world.close()
    perigee.register_model("mine", nil)
    for _, odd in ipairs(ODD) do
      if type(odd) == "string" and odd ~= "" then
        perigee.register_model(odd, nil)
        os.remove((odd:gsub("%z", " "))) -- a path like any other, of what was saved
      end
    end
  end)

  it("are tried with every public function", function()
    local entries, known, missing, gone = surface.entries(world), surface.functions(world), {}, {}
    for name in pairs(known) do
      missing[#missing + 1] = not entries[name] and not surface.INTERNAL[name] and name or nil
    end
    for _, list in ipairs { entries, surface.INTERNAL } do
      for name in pairs(list) do
        gone[#gone + 1] = not known[name] and name or nil
      end
    end
    table.sort(missing)
    table.sort(gone)
    assert.are.same({ {}, {} }, { missing, gone })
  end)

  for _, group in ipairs(surface.GROUPS) do
    it("are refused by name: " .. group, function()
      local faults, entries = {}, surface.entries(world)
      for name, entry in pairs(entries) do
        if entry.group == group then
          sweep(faults, name, entry)
        end
      end
      table.sort(faults)
      assert.are.equal("", table.concat(faults, "\n", 1, math.min(#faults, 30)))
    end)
  end
end)
