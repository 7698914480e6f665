#!/usr/bin/env luajit
--- How many tokens calibration needs: the SQNR of the hidden states of texts that it did not see, by the number of texts that it
-- saw. Each number of texts is drawn five times from recipes/data/calibration.txt. Prints tokens and dB of each draw.
--
--   PERIGEE_LIB=build/libperigee.so luajit spec/bench/calibration.lua [MODEL]
package.path = "lua/?.lua;lua/?/init.lua;" .. package.path
local perigee = require "perigee"

local DRAWS, SHIFT, HELD = 5, 37, 96

local model = perigee.load(arg[1] or "build/demo/all-MiniLM-L6-v2")
local all = perigee.texts "recipes/data/calibration.txt"
local pairs_of, held = perigee.evaluate.read("recipes/data/pairs.tsv").texts, {}
for i = 1, HELD do
  held[i] = pairs_of[math.floor((i - 1) * #pairs_of / HELD) + 1][1]
end
local reference = model:hidden(held)

-- Tokens and dB by the texts of one draw, as text.
local function measured(list)
  local stats = model:calibrate(list, { progress = false, samples = #list })
  local q = model:quantize { stats = stats }
  local hidden = q:hidden(held)
  local text = ("%d: %.2f dB"):format(stats.tokens, reference:sqnr(hidden))
  hidden:release()
  q:release()
  stats:release()
  return text
end

for _, n in ipairs { 1, 2, 4, 8, 16, 32, 64, 128 } do
  local texts = {}
  for draw = 1, DRAWS do
    local list = {}
    for i = 1, n do
      list[i] = all[(math.floor((i - 1) * #all / n) + draw * SHIFT) % #all + 1]
    end
    texts[draw] = measured(list)
  end
  print(("%d texts   %s"):format(n, table.concat(texts, ", ")))
end
