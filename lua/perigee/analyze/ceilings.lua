--- Ceilings: how much faster a model can become if some of its parts become faster (Amdahl's law).
--
-- A part's share is its share of the time before; its speed-up is how many times faster it becomes.
local ceilings = {}

local SLACK = 1e-6 -- shares are sums of floats

--- The speed-up of the whole. parts: list of { share = 0 to 1, speedup = above 0 }; the shares add up to 1.
function ceilings.amdahl(parts)
  local shares, time = 0, 0
  for _, part in ipairs(parts) do
    if not (part.share >= 0 and part.speedup > 0) then
      error(("a part has the share %g and the speed-up %g, expected a share of at least 0 and a speed-up above 0"):format(
        part.share, part.speedup), 2)
    end
    shares, time = shares + part.share, time + part.share / part.speedup
  end
  if math.abs(shares - 1) > SLACK then
    error(("the shares add up to %g, expected 1"):format(shares), 2)
  end
  return 1 / time
end

--- The ceiling of a model whose linear blocks become faster by one factor and the rest, attention included, by another.
-- linear: the share of the linear blocks. That is how papers on INT8 linears count.
function ceilings.linears(linear, speedup, rest)
  return ceilings.amdahl { { share = linear, speedup = speedup }, { share = 1 - linear, speedup = rest or 1 } }
end

--- The ceiling of a model whose linears become `speedup` times as fast, its attention, in INT8 as well, `attention_speedup`
-- times, and the remaining share of the time, 1 - linear - attention, `rest` times (default 1). linear and attention are shares
-- of the time before.
function ceilings.with_attention(linear, attention, speedup, attention_speedup, rest)
  return ceilings.amdahl {
    { share = linear, speedup = speedup }, { share = attention, speedup = attention_speedup },
    { share = 1 - linear - attention, speedup = rest or 1 },
  }
end

--- Inputs of a published analysis of BERT-large with INT8 linears (SmoothQuant, static) on two Xeons, and the ceilings over
-- FP32 that it states. Its inputs are rounded: from them Amdahl's law gives 3.18 and 7.08, which is 1.0 and 0.3 % more.
-- attention: the share of attention, which the analysis gives as 10 to 12 %.
ceilings.PUBLISHED = {
  { machine = "icelake-8380", linear = 0.89, speedup = 4.0, rest = 1.20, attention = 0.10, stated = 3.15 },
  { machine = "granite-rapids-6980p", linear = 0.87, speedup = 11.1, rest = 2.06, attention = 0.12, stated = 7.06 },
}

--- Ceilings of a measured model.
--   before   seconds in FP32: { linear =, attention =, rest = }
--   bound    shortest seconds in INT8: { linear =, attention = }
--   after    seconds in INT8 as measured: { rest = }
-- Returns speed-ups of the whole:
--   linears     the linear blocks run at their bound, the other parts as in FP32
--   attention   linear blocks and attention run at their bounds, the rest as in FP32
--   rest        the same, and the rest takes the time that was measured in INT8
function ceilings.measured(before, bound, after)
  local all = before.linear + before.attention + before.rest
  return {
    linears = all / (bound.linear + before.attention + before.rest),
    attention = all / (bound.linear + bound.attention + before.rest),
    rest = all / (bound.linear + bound.attention + after.rest),
  }
end

return ceilings
