--- Observers: the exact minimum and maximum of each of K channels over all rows that they are given, and a sample of these rows.
--
--   local observer = require "perigee.observer"
--   local o = observer.new(384)
--   o:update(x)                        -- x: F32 [rows][384], or nested lists
--   o.min, o.max, o.count              -- tensors F32 [384], which include 0; rows seen
--   o.low, o.high                      -- tensors F32 [384], the smallest and the largest value of each channel, without 0
--   o:sample()                         -- F32 [min(count, 256)][384], in the order of the stream
--
-- min is at most 0 and max at least 0. Only the number of a row in the stream decides whether the sample has it.
local pgee = require "perigee.ffi"
local tensor = require "perigee.tensor"
local options = require "perigee.options"
local C, check, error = pgee.C, pgee.check, pgee.error

local M = {}
local methods = {}
local class
local out = pgee.out "pgee_observer *"
local out_tensor = pgee.out "pgee_tensor *"
local known = { sample = true, name = true }

--- An observer of K channels.
--   sample  rows that it keeps at most; 256
--   name    of what it watches: messages name it
function M.new(K, given)
  given = options.check(given, known, "observer")
  local sample = given.sample or 256
  for what, n in pairs { K = type(K) == "nil" and 0 or K, sample = sample } do
    if type(n) ~= "number" or n % 1 ~= 0 then
      error(("observer: %s is %s, expected an integer"):format(what, pgee.describe(n)))
    end
  end
  if given.name ~= nil and type(given.name) ~= "string" then
    error(("observer: name is %s, expected a string"):format(pgee.describe(given.name)))
  end
  check(C.pgee_observer_new(out, K or 0, sample, given.name))
  return class.wrap(out[0])
end

--- Whether x is an observer.
function M.is(x)
  return class.is(x)
end

--- For modules: the handle of x, or an error that names `what`.
function M.handle(x, what)
  return (class.handle(x, what))
end

--- Takes in rows of K channels: F32 [rows][K] or nested lists. NaN or infinity is an error that names row and channel, and then
-- nothing is taken in. Returns the observer.
function methods.update(o, x)
  local h = class.handle(o, "observer")
  if type(x) == "table" then
    x = pgee.raise(tensor.from, x)
  end
  check(C.pgee_observer_update(h, tensor.handle(x, "x")))
  return o
end

--- The rows kept, a copy.
function methods.sample(o)
  check(C.pgee_observer_read(class.handle(o, "observer"), nil, nil, out_tensor))
  return tensor.wrap(out_tensor[0])
end

--- Frees it at once, unless a plan still holds it.
function methods.release(o)
  class.release(o)
end

local function read(h, ...)
  check(C.pgee_observer_read(h, ...))
  return tensor.wrap(out_tensor[0])
end

local function extreme(h, ...)
  check(C.pgee_observer_extremes(h, ...))
  return tensor.wrap(out_tensor[0])
end

local properties = {
  low = function(h) return extreme(h, out_tensor, nil) end,
  high = function(h) return extreme(h, nil, out_tensor) end,
  min = function(h) return read(h, out_tensor, nil, nil) end,
  max = function(h) return read(h, nil, out_tensor, nil) end,
  count = function(h) return tonumber(C.pgee_observer_count(h)) end,
  K = function(h) return tonumber(C.pgee_observer_channels(h)) end,
}

class = pgee.class("observer", "pgee_observer", "pgee_observer_free", {
  __index = function(o, key)
    local property = properties[key]
    return property and property(class.handle(o, "observer")) or methods[key]
  end,
  __names = function() return { methods, properties } end,
  __tostring = function(o)
    return o.handle == nil and "observer (released)" or ("observer of %d channels, %d rows seen"):format(o.K, o.count)
  end,
})

return M
