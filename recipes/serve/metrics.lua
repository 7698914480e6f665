--- Counters of the server in Prometheus' text format, by the names that text-embeddings-inference gives them. nginx's shared
-- memory holds them, summed over the workers.
local metrics = {}

local dict = ngx.shared.perigee

-- Upper bounds of histograms: seconds, and counts of inputs and tokens.
local SECONDS = { 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30 }
local COUNTS = { 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768 }

local HISTOGRAMS = {
  te_request_duration = { SECONDS, "Seconds of a request, from its body on" },
  te_request_queue_duration = { SECONDS, "Seconds that a request waited for the engine" },
  te_request_tokenization_duration = { SECONDS, "Seconds that the batches of a request spent on tokenizing" },
  te_request_inference_duration = { SECONDS, "Seconds of the batches that a request was in" },
  te_request_input_length = { COUNTS, "Tokens of a request's inputs" },
  te_batch_next_size = { COUNTS, "Inputs of a batch" },
  te_batch_next_tokens = { COUNTS, "Tokens of a batch" },
}
local COUNTERS = {
  te_request_count = "Requests, by path", te_request_success = "Requests that were answered, by path",
  te_request_failure = "Requests that were not answered, by the kind of error",
  te_embed_count = "Inputs of embed", te_predict_count = "Inputs of predict", te_rerank_count = "Documents of rerank",
}

--- Adds to a counter. labels: 'path="/embed"', or nil.
function metrics.count(name, labels, amount)
  dict:incr("c " .. name .. "{" .. (labels or "") .. "}", amount or 1, 0)
end

--- Adds a value to a histogram.
function metrics.observe(name, value)
  for i, bound in ipairs(HISTOGRAMS[name][1]) do
    if value <= bound then
      dict:incr(("h %s %02d"):format(name, i), 1, 0)
      break
    end
  end
  dict:incr("n " .. name, 1, 0)
  dict:incr("s " .. name, value, 0)
end

--- How many requests wait in this worker.
function metrics.queue(waiting)
  dict:set("q " .. ngx.worker.id(), waiting)
end

function metrics.batch(inputs, tokens)
  metrics.observe("te_batch_next_size", inputs)
  metrics.observe("te_batch_next_tokens", tokens)
end

local function sorted(t)
  local list = {}
  for key in pairs(t) do
    list[#list + 1] = key
  end
  table.sort(list)
  return list
end

local function write_counters(lines)
  local values = {}
  for _, key in ipairs(dict:get_keys(0)) do
    local name, labels = key:match "^c ([%w_]+)(%b{})$"
    if name then
      values[name] = values[name] or {}
      values[name][labels ~= "{}" and labels or ""] = dict:get(key)
    end
  end
  for _, name in ipairs(sorted(COUNTERS)) do
    lines[#lines + 1] = ("# HELP %s %s\n# TYPE %s counter"):format(name, COUNTERS[name], name)
    for _, labels in ipairs(sorted(values[name] or {})) do
      lines[#lines + 1] = ("%s%s %.0f"):format(name, labels, values[name][labels])
    end
  end
end

local function write_histograms(lines)
  for _, name in ipairs(sorted(HISTOGRAMS)) do
    local below = 0
    lines[#lines + 1] = ("# HELP %s %s\n# TYPE %s histogram"):format(name, HISTOGRAMS[name][2], name)
    for i, bound in ipairs(HISTOGRAMS[name][1]) do
      below = below + (dict:get(("h %s %02d"):format(name, i)) or 0)
      lines[#lines + 1] = ('%s_bucket{le="%g"} %.0f'):format(name, bound, below)
    end
    lines[#lines + 1] = ('%s_bucket{le="+Inf"} %.0f'):format(name, dict:get("n " .. name) or 0)
    lines[#lines + 1] = ("%s_sum %.9g"):format(name, dict:get("s " .. name) or 0)
    lines[#lines + 1] = ("%s_count %.0f"):format(name, dict:get("n " .. name) or 0)
  end
end

--- All of them as text.
function metrics.text()
  local lines, waiting = {}, 0
  for worker = 0, ngx.worker.count() - 1 do
    waiting = waiting + (dict:get("q " .. worker) or 0)
  end
  lines[1] = "# HELP te_queue_size Requests that wait for the engine\n# TYPE te_queue_size gauge\nte_queue_size " .. waiting
  write_counters(lines)
  write_histograms(lines)
  return table.concat(lines, "\n") .. "\n"
end

return metrics
