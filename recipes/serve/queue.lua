--- The queue of one nginx worker, and the batches that are made of it.
--
-- There is no timer: what came while the engine was busy is the next batch, and a request that comes alone runs at once. A batch
-- takes inputs of several requests, in the order in which these came, up to a number of tokens. A request with more inputs than
-- that is answered in several batches, and other requests get their turn between them. A model gives the same bits for an input
-- whatever else is in the batch.
local config = require "serve.config"
local metrics = require "serve.metrics"
local semaphore = require "ngx.semaphore"

local queue = {}

local waiting = {} -- jobs, first come first
local busy = false

-- About how many tokens an input has: a quarter of its bytes, and no more than the model takes.
local function estimate(item, limit)
  if type(item) == "string" then
    return math.min(#item / 4 + 2, limit)
  end
  local sum = 0
  for _, part in pairs(item) do
    sum = sum + (type(part) == "number" and 1 or estimate(part, limit))
  end
  return math.min(sum, limit)
end

-- Takes inputs of a job into the groups of a batch, while `room` tokens last; at least one if the batch is empty.
local function take(job, groups, by_key, room, empty)
  local group = by_key[job.key]
  if not group then
    group = { path = job.model.path, task = job.task, options = job.options, format = job.format, items = {}, owners = {} }
    by_key[job.key], groups[#groups + 1] = group, group
  end
  while job.next <= #job.items and (room > 0 or empty) do
    room, empty = room - estimate(job.items[job.next], job.model.limit), false
    table.insert(group.items, job.items[job.next])
    table.insert(group.owners, { job = job, at = job.next })
    job.next = job.next + 1
  end
  return room
end

-- The next batch: a list of groups. Jobs that have inputs left stay in the queue, behind the others.
local function compose()
  local groups, by_key, room, left, later = {}, {}, config.limits.batch_tokens, {}, {}
  for _, job in ipairs(waiting) do
    if not job.cancelled then
      if room > 0 then
        job.began = job.began or ngx.now()
        room = take(job, groups, by_key, room, #groups == 0)
        later[#later + 1] = job.next <= #job.items and job or nil
      else
        left[#left + 1] = job
      end
    end
  end
  for _, job in ipairs(later) do
    left[#left + 1] = job
  end
  waiting = left
  return groups
end

local function deliver(groups, answers, seconds, tokenizing)
  local tokens, inputs, timed = 0, 0, {}
  for g, group in ipairs(groups) do
    for i, owner in ipairs(group.owners) do
      local job, result = owner.job, answers[g][i]
      job.answers[owner.at] = result
      job.left = job.left - 1
      if not timed[job] then
        timed[job], job.seconds, job.tokenizing = true, job.seconds + seconds, job.tokenizing + tokenizing
      end
      tokens, inputs = tokens + (result.tokens or 0), inputs + 1
      if job.left == 0 then
        job.done:post()
      end
    end
  end
  metrics.batch(inputs, tokens)
end

local function failed(groups, why)
  local answers = {}
  for g, group in ipairs(groups) do
    answers[g] = {}
    for i = 1, #group.owners do
      answers[g][i] = { error = why, broken = true }
    end
  end
  return answers
end

-- What the engine's Lua state takes of the groups.
local function plain(groups)
  local list = {}
  for g, group in ipairs(groups) do
    list[g] = { path = group.path, task = group.task, options = group.options, format = group.format, items = group.items }
  end
  return list
end

local function run_all()
  while #waiting > 0 do
    local groups = compose()
    metrics.queue(#waiting)
    if #groups > 0 then
      local ok, answers, seconds, tokenizing = ngx.run_worker_thread("engine", "serve.engine", "run", plain(groups))
      if not ok then
        ngx.log(ngx.ERR, "engine: ", tostring(answers))
        answers = failed(groups, "the engine failed: " .. tostring(answers))
      end
      deliver(groups, answers, tonumber(seconds) or 0, tonumber(tokenizing) or 0)
    end
  end
end

local function dispatch()
  local ok, why = pcall(run_all)
  busy = false
  if not ok then
    ngx.log(ngx.ERR, "queue: ", tostring(why))
  end
end

--- Answers inputs. job: { model =, task =, options =, format =, items = }. Waits for the answers, a list of { value =, tokens =,
-- dropped = } or { error =, broken = whether the engine failed }. Without answers: nil and why, "full" or "late".
function queue.answer(job)
  if #waiting >= config.limits.queue then
    return nil, "full"
  elseif #job.items == 0 then
    return {}
  end
  job.key = table.concat({ job.model.path, job.task, job.format or "", config.text_of(job.options) }, "\0")
  job.next, job.left, job.answers, job.done = 1, #job.items, {}, semaphore.new(0)
  job.seconds, job.tokenizing = 0, 0
  job.came = ngx.now()
  waiting[#waiting + 1] = job
  metrics.queue(#waiting)
  if not busy then
    busy = true
    local ok, why = ngx.timer.at(0, dispatch)
    if not ok then
      busy = false
      return nil, "late", why
    end
  end
  if not job.done:wait(config.limits.seconds) then
    job.cancelled = true
    return nil, "late"
  end
  return job.answers
end

--- Opens the models in the engine's Lua state. For init_worker.
function queue.start()
  local paths = {}
  for i, model in ipairs(config.models) do
    paths[i] = model.path
  end
  busy = true
  ngx.timer.at(0, function()
    local ok, why = ngx.run_worker_thread("engine", "serve.engine", "open", paths)
    if not ok or why ~= "" then
      ngx.log(ngx.ERR, "the models cannot be opened: ", tostring(why))
      config.broken = tostring(why)
    else
      config.ready = true
    end
    dispatch()
  end)
end

return queue
