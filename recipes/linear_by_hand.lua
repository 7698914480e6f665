#!/usr/bin/env luajit
--- Quantizes one linear step by step: the steps of a whole model, for one layer and at a prompt.
--
--   luajit recipes/linear_by_hand.lua           or paste it into luajit, piece by piece
local here = (arg and arg[0] or "recipes/x"):match "^(.*)/[^/]*$" or "."
dofile(here .. "/modules.lua")
require("common").no_arguments("linear_by_hand", "Quantizes one linear step by step and prints what comes out.")
local perigee = require "perigee"
local tensor, observer, packed, linear, quant = perigee.tensor, perigee.observer, perigee.packed, perigee.linear, perigee.quant

-- A layer of 8 inputs and 4 outputs, and 64 inputs to it. As in a real BERT, one input channel (the third) is far larger than the
-- others.
local K, N, rows = 8, 4, 64
local function wave(i, j)
  return math.sin(i * 12.9898 + j * 78.233) -- any numbers would do
end
local W, bias, X = {}, {}, {}
for n = 1, N do
  W[n], bias[n] = {}, wave(n, 0)
  for k = 1, K do
    W[n][k] = wave(n, k)
  end
end
for i = 1, rows do
  X[i] = {}
  for k = 1, K do
    X[i][k] = wave(i + 100, k) * (k == 3 and 50 or 1)
  end
end
W, bias, X = tensor.from(W), tensor.from(bias), tensor.from(X)
print("the weight:", W)

-- In FP32, to compare with.
local exact = linear(X, packed.new(W, { dtype = "f32" }), { bias = bias })

-- 1. Observe the range of every input channel.
local seen = observer.new(K):update(X)
print("minimum of each channel:", seen.min)
print("maximum of each channel:", seen.max)

-- 2. Quantize without smoothing. One scale serves all channels. It must reach the third channel's 50, so that few of the 256
-- steps are left for the other channels.
local function maximum(t)
  return math.max(unpack(t:totable()))
end
local function minimum(t)
  return math.min(unpack(t:totable()))
end
local range = quant.range(minimum(seen.min), maximum(seen.max))
print(("scale %.4f, zero point %d"):format(range.scale, range.zero))
local plain = linear(X, packed.new(W), { bias = bias, quantize = range })
print(("without smoothing: SQNR %.1f dB"):format(exact:sqnr(plain)))

-- 3. Smooth: divide every input channel by s, and multiply the weights of that channel by s. The product is the same. alpha
-- says how much of the range moves from the inputs into the weights.
local function smoothed(alpha)
  local xmax = {}
  for k = 1, K do
    xmax[k] = math.max(-seen.min[k], seen.max[k])
  end
  local s = quant.smooth(tensor.from(xmax), quant.absmax { W }, alpha)

  -- The range after the division, and the weights after the multiplication:
  local lo, hi = 0, 0
  for k = 1, K do
    lo, hi = math.min(lo, seen.min[k] / s[k]), math.max(hi, seen.max[k] / s[k])
  end
  local smooth_range = quant.range(lo, hi)
  local w8 = packed.new(W, { smooth = s })
  local x8 = quant.quantize(X, { scale = smooth_range.scale, zero = smooth_range.zero, symmetric = false, smooth = s })
  return linear(x8, w8, { bias = bias }), s, w8
end

for alpha = 0, 1, 0.25 do
  print(("alpha %.2f: SQNR %.1f dB"):format(alpha, exact:sqnr((smoothed(alpha)))))
end

-- 4. Print the parts: s, the packed weight, its integers and its scales.
local _, s, w8 = smoothed(0.5)
print("s:", s)
print(w8)
print("integers:", w8:unpack())
print("scales:", w8.scales)

-- 5. Dynamic: no observer is needed. Every row gets its own scale when it is quantized.
local dynamic = linear(X, packed.new(W, { smooth = s }), { bias = bias, quantize = { per = "token", smooth = s } })
print(("dynamic, smoothed: SQNR %.1f dB"):format(exact:sqnr(dynamic)))
