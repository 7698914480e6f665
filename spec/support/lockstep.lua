--- Lockstep: runs a checkpoint on given ids on request, so that a script can time it side by side with other libraries.
--
--   luajit spec/support/lockstep.lua --model DIR --ids FILE --batch B --tokens S [--mode static|dynamic|f32] [--alpha A]
--
-- FILE holds B x S int32 token ids. Prints "ready" when loaded. On a line "go": one forward of them as one batch, then its
-- seconds. On a line "save PATH": writes the last hidden states, B x S x H float32, and prints "saved". Static mode calibrates on
-- random ids, since the models that are timed may be random. PERIGEE_THREADS says how many threads; `taskset` which cores.
local folder = arg[0]:match "^(.*)/spec/support/[^/]*$" or "."
package.path = folder .. "/lua/?.lua;" .. folder .. "/lua/?/init.lua;" .. package.path
local ffi = require "ffi"
local argparse = require "argparse"
local perigee = require "perigee"
local pgee = require "perigee.ffi"

local parser = argparse("lockstep.lua", "Runs a checkpoint on given ids on request.")
parser:option("--model", "a checkpoint's folder")
parser:option("--ids", "a file of int32 token ids")
parser:option("--batch", "sequences"):convert(tonumber)
parser:option("--tokens", "tokens in each"):convert(tonumber)
parser:option("--mode", "static, dynamic or f32"):choices({ "static", "dynamic", "f32" }):default "static"
parser:option("--alpha", "SmoothQuant's alpha; the default is the library's"):convert(tonumber)
parser:flag("--select", "time the kernels for these shapes first")
local options = parser:parse()

local function read_ids(path, B, S)
  local file = assert(io.open(path, "rb"))
  local bytes = file:read "*a"
  file:close()
  assert(#bytes == B * S * 4, "the file of ids has another size than batch x tokens")
  local ids, inputs = ffi.cast("const int32_t *", bytes), {}
  for b = 1, B do
    inputs[b] = { ids = {} }
    for s = 1, S do
      inputs[b].ids[s] = ids[(b - 1) * S + s - 1]
    end
  end
  return inputs
end

local function random_inputs(count, length)
  local state, inputs = 7, {}
  for i = 1, count do
    inputs[i] = { ids = {} }
    for j = 1, length do
      state = (state * 1103515245 + 12345) % 2 ^ 31
      inputs[i].ids[j] = 1000 + math.floor(state / 2 ^ 31 * 19000)
    end
  end
  return inputs
end

local function load_model()
  local model = perigee.load(options.model)
  if options.mode == "f32" then
    return model
  end
  local stats = options.mode == "static" and model:calibrate(random_inputs(8, 128)) or nil
  local q = model:quantize { activations = options.mode, alpha = options.alpha, stats = stats }
  if options.select then
    q:select { tokens = { options.batch * options.tokens } }
  end
  return q
end

local model = load_model()
local inputs = read_ids(options.ids, options.batch, options.tokens)
io.stdout:setvbuf "line"
print "ready"
for line in io.lines() do
  local path = line:match "^save (.*)"
  if path then
    local hidden = model:hidden(inputs)
    local file = assert(io.open(path, "wb"))
    assert(file:write(ffi.string(hidden:pointer(), #hidden * hidden.shape[2] * 4)))
    file:close()
    hidden:release()
    print "saved"
  elseif line == "go" then
    local began = pgee.C.pgee_seconds()
    local hidden = model:hidden(inputs)
    local seconds = pgee.C.pgee_seconds() - began
    hidden:release()
    print(("%.9f"):format(seconds))
  else
    error("expected go or save PATH, got " .. line)
  end
end
