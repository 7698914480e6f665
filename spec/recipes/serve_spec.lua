-- recipes/serve.lua: nginx with models of spec/golden, asked by curl. Answers are those of the same models in this process.
local cjson = require "cjson"
local ffi = require "ffi"
local files = require "spec.support.files"
local perigee = require "perigee"
local server = require "spec.support.server"
local skip = require "spec.support.skip"

local it = server.missing() and skip(server.missing()) or it -- luacheck: ignore 431

local FOLDER = "spec/golden/tasks/"
local NAMES = { "sentence", "nli", "qa", "ner", "mlm", "cross" }

local function bits(numbers)
  return ffi.string(ffi.new("float[?]", #numbers, numbers), 4 * #numbers)
end

describe("serve", function()
  local s, paths, models = nil, {}, {}

  setup(function()
    if server.missing() then
      return
    end
    local list = {}
    for i, name in ipairs(NAMES) do
      paths[name] = os.tmpname()
      perigee.load(FOLDER .. name):quantize({ activations = "dynamic" }):save(paths[name])
      models[name] = perigee.open(paths[name])
      list[i] = name .. "=" .. paths[name]
    end
    s = server.start(list, "--workers 2 --max-body 4096 --max-texts 50")
  end)

  teardown(function()
    if s then
      s:stop()
    end
    for _, path in pairs(paths) do
      os.remove(path)
    end
    files.clean()
  end)

  it("embeds: one text, several, ids; bits are those of the engine", function()
    local texts = { "a text", "another, longer text" }
    local want = models.sentence:embed(texts, { normalize = true, tables = true })
    local answer, status, headers = s:post("/embed", { inputs = texts })
    assert.equal(200, status)
    for i = 1, 2 do
      assert.equal(bits(want[i]), bits(answer[i]))
    end
    assert.equal("cpu", headers["x-compute-type"])
    assert.truthy(tonumber(headers["x-compute-tokens"]) > 4)
    assert.same({ answer[1] }, (s:post("/embed", { inputs = "a text" })))
    local ids = models.sentence:tokens("a text").ids
    local of_ids = models.sentence:embed({ ids = ids }, { prompt = false, normalize = true, tables = true })
    assert.equal(bits(of_ids), bits(s:post("/embed", { inputs = ids })[1]))
    assert.equal(bits(of_ids), bits(s:post("/embed", { inputs = { ids, ids } })[2]))
    local mixed, refused = s:post("/embed", { inputs = { ids, texts[2] } })
    assert.equal(413, refused)
    assert.matches("send texts, or token ids alone", mixed.error)
    local raw = models.sentence:embed("a text", { normalize = false, tables = true, dimensions = 3 })
    assert.equal(bits(raw), bits(s:post("/embed", { inputs = "a text", normalize = false, dimensions = 3 })[1]))
  end)

  it("gives a vector for each token", function()
    local hidden = models.sentence:hidden { "a text" }
    local answer = s:post("/embed_all", { inputs = "a text" })
    assert.equal(#hidden, #answer[1])
    for i, row in ipairs(hidden:totable()) do
      assert.equal(bits(row), bits(answer[1][i]))
    end
  end)

  it("speaks OpenAI's API", function()
    local answer, status = s:post("/v1/embeddings", { input = { "a text", "b" }, model = "sentence" })
    assert.equal(200, status)
    assert.equal("list", answer.object)
    assert.equal("embedding", answer.data[2].object)
    assert.equal(answer.usage.prompt_tokens, answer.usage.total_tokens)
    local want = models.sentence:embed({ "a text", "b" }, { normalize = true, tables = true })
    assert.equal(bits(want[2]), bits(answer.data[2].embedding))
    local coded = s:post("/v1/embeddings", { input = "b", encoding_format = "base64" }).data[1].embedding
    assert.equal(math.ceil(4 * #want[2] / 3) * 4, #coded - #coded % 4)
    assert.equal("sentence", s:get("/v1/models").data[1].id)
    local wrong, code = s:post("/v1/embeddings", { input = "b", model = "gpt" })
    assert.equal(404, code)
    assert.matches("there is no model 'gpt'; the models are sentence, nli", wrong.error.message)
  end)

  it("predicts, ranks and compares", function()
    local answer = s:post("/predict", { inputs = { "a", "b" } })
    assert.equal(3, #answer)
    local pair = models.nli:classify({ { "a", "b" } })[1]
    assert.equal(pair.label, answer[1].label)
    assert.near(pair.score, answer[1].score, 1e-7)
    local batch = s:post("/predict", { inputs = { { "a" }, { "a", "b" } } })
    assert.same(answer, batch[2])
    local ranked = s:post("/rerank", { query = "q", texts = { "x", "y", "z" }, return_text = true, raw_scores = true })
    local own = models.cross:rerank("q", { "x", "y", "z" })
    for i, entry in ipairs(own) do
      assert.equal(entry.index - 1, ranked[i].index)
      assert.near(entry.logit, ranked[i].score, 1e-6)
      assert.equal(entry.text, ranked[i].text)
    end
    local cohere = s:post("/v2/rerank", { query = "q", documents = { "x", { text = "y" } }, top_n = 1, return_documents = true })
    assert.equal(1, #cohere.results)
    assert.truthy(cohere.results[1].relevance_score > 0 and cohere.results[1].relevance_score < 1)
    assert.near(1, s:post("/similarity", { inputs = { source_sentence = "x", sentences = { "x", "y" } } })[1], 1e-6)
  end)

  it("answers the other tasks in the form of Hugging Face's API", function()
    local entities = s:post("/ner", { inputs = "Angela was in Paris", parameters = { aggregation_strategy = "simple" } })
    local own = models.ner:ner("Angela was in Paris", { aggregation = "simple" })
    assert.equal(#own, #entities)
    assert.equal(own[1].label, entities[1].entity_group)
    local asked = { question = "Who?", context = "She did." }
    assert.equal(models.qa:qa(asked).answer, s:post("/qa", { inputs = asked }).answer)
    local pieces = s:post("/fill_mask", { inputs = "a [MASK] b", parameters = { top_k = 3 } })
    assert.equal(3, #pieces)
    assert.same(pieces, (s:post("/fill", { inputs = "a [MASK] b", parameters = { top_k = 3 } })))
    local labels = s:post("/zeroshot", { inputs = "text", parameters = { candidate_labels = { "a", "b" } } })
    assert.near(1, labels[1].score + labels[2].score, 1e-6)
    assert.same(entities, (s:post("/models/ner/", {
      inputs = "Angela was in Paris", parameters = { aggregation_strategy = "simple" },
    })))
    assert.same(s:post("/embed", { inputs = "x" }), (s:post("/", { inputs = "x" })))
  end)

  it("cuts into tokens and back", function()
    local tokens = s:post("/tokenize", { inputs = "a text", model = "sentence" })[1]
    assert.is_true(tokens[1].special)
    local ids = {}
    for i, token in ipairs(tokens) do
      ids[i] = token.id
    end
    assert.same(models.sentence:tokens("a text").ids, ids)
    assert.equal(models.sentence:tokenizer():decode(ids), s:post("/decode", { ids = ids })[1])
  end)

  it("answers JSON Lines in order", function()
    local body = '{"text":"a"}\n{"id":1}\nno\n{"text":"b"}'
    local text = s:post("/pipe?model=sentence", body)
    local rows = {}
    for line in text:gmatch "[^\n]+" do
      rows[#rows + 1] = cjson.decode(line)
    end
    assert.equal(4, #rows)
    assert.equal(bits(models.sentence:embed("b", { tables = true })), bits(rows[4].result))
    assert.equal(2, rows[2].line)
    assert.matches("missing", rows[2].error)
    assert.equal(3, rows[3].line)
  end)

  it("refuses what is wrong, each with its status and a message", function()
    local long = ("word "):rep(600)
    for _, case in ipairs {
      { "/embed", "", 400, "the body is empty" }, { "/embed", "{", 400, "no valid JSON" },
      { "/embed", '{"inputs":"\255"}', 400, "UTF%-8 at byte 12" }, { "/embed", "[]", 422, "inputs is missing" },
      { "/embed", "{}", 422, "inputs is missing, expected a string" },
      { "/embed", '{"inputs":5}', 422, "inputs is 5, expected a string" },
      { "/embed", '{"inputs":"a","input":1}', 422, "input is not known; expected dimensions, inputs" },
      { "/embed", '{"inputs":"a","dimensions":0}', 422, "dimensions is 0, expected an integer of at least 1" },
      { "/embed", '{"inputs":[99999999]}', 413, "token id 99999999 is out of range.*check_embedding_ctx_length" },
      { "/embed", cjson.encode { inputs = long, truncate = false }, 413, "tokens, at most" },
      { "/embed", '{"inputs":"a","prompt_name":"zz"}', 413, "prompt_name is 'zz'" },
      { "/embed", '{"inputs":"a","model":"nli"}', 424, "nli does not answer embed" },
      { "/embed", '{"inputs":"' .. ("x"):rep(5000) .. '"}', 413, "the body has more than 4096 bytes" },
      { "/nothing", "{}", 404, "there is no /nothing" }, { "/%ff", "{}", 404, "there is no /\239\191\189" },
      { "/predict", '{"inputs":["a","b","c"]}', 422, "inputs is a list" },
      { "/", "null", 422, "no object" }, { "/", "true", 422, "no object" }, { "/", '{"parameters":1}', 422, "" },
      { "/", '{"parameters":null,"inputs":"a"}', 200 }, { "/pipe?task=qa&task=ner", "x", 422, "task is given twice" },
      { "/tokenize", cjson.encode { inputs = { "a", unpack(require("perigee.options").names(perigee.tasks)) } }, 200 },
      { "/rerank", '{"query":"q","texts":[]}', 422, "texts has 0 entries" },
      { "/fill_mask", '{"inputs":"no mask"}', 413, "has no %[MASK%]" },
    } do
      local path, body, want, message = unpack(case)
      local answer, status = s:post(path, body)
      assert.equal(want, status, path .. " " .. body:sub(1, 60))
      assert.matches(message or "", type(answer) == "table" and answer.error or "")
    end
    local answer, status = s:get "/embed"
    assert.equal(405, status)
    assert.matches("/embed takes POST", answer.error)
  end)

  it("an input that is wrong is no harm to others of its batch", function()
    local script = { "cd " .. files.top() }
    for i = 1, 8 do
      local body = i % 2 == 0 and { inputs = ("word "):rep(600), truncate = false } or { inputs = "a text" }
      script[i + 1] = ("curl -s -m 20 -o /dev/null -w '%%{http_code} ' --data-binary @%s http://127.0.0.1:%d/embed &"):format(
        files.write(cjson.encode(body)), s.port)
    end
    script[#script + 1] = "wait"
    local text = files.bash(table.concat(script, "\n"), 60)
    assert.equal(4, select(2, text:gsub("200", "")))
    assert.equal(4, select(2, text:gsub("413", "")))
  end)

  it("gives a text its bits under load, whatever else is asked", function()
    local want = bits(s:post("/embed", { inputs = "a text" })[1])
    local other = files.write(cjson.encode { inputs = { "b", ("word "):rep(30), "c d e" } })
    local own, script = files.write(cjson.encode { inputs = "a text" }), {}
    for i = 1, 40 do
      script[i] = ("curl -s -m 30 --data-binary @%s http://127.0.0.1:%d/embed > %s &"):format(i % 2 == 0 and own or other, s.port,
        i % 2 == 0 and files.write "" or "/dev/null")
    end
    local made = {}
    for _, line in ipairs(script) do
      made[#made + 1] = line:match "> (/tmp/%S+)"
    end
    files.bash(table.concat(script, "\n") .. "\nwait", 60)
    assert.equal(20, #made)
    for _, path in ipairs(made) do
      local file = assert(io.open(path))
      assert.equal(want, bits(cjson.decode(file:read "*a")[1]))
      file:close()
    end
  end)

  it("describes its endpoints, and each takes what it describes", function()
    local api = s:get "/openapi.json"
    assert.equal("3.1.0", api.openapi)
    local count = 0
    for path, methods in pairs(api.paths) do
      for method in pairs(methods) do
        count = count + 1
        local _, status = s:request(path, method == "post" and "--data-binary '{\"zz\":1}'" or "")
        assert.truthy(status ~= 404 and status ~= 405, path)
        if method == "post" and path ~= "/pipe" then
          assert.truthy(status == 422 or status == 424, path .. " " .. status)
        end
      end
    end
    assert.truthy(count >= 20)
    for _, field in ipairs { "inputs", "normalize", "truncate", "truncation_direction", "prompt_name", "dimensions" } do
      assert.truthy(api.paths["/embed"].post.requestBody.content["application/json"].schema.properties[field], field)
    end
  end)

  it("says what it is, and counts", function()
    local info = s:get "/info"
    assert.equal("sentence", info.model_id)
    assert.equal("int8", info.model_dtype)
    local text = s:get "/metrics"
    for _, name in ipairs {
      "te_request_count", "te_request_duration", "te_queue_size", "te_batch_next_tokens", "te_batch_next_size", "te_embed_count",
    } do
      assert.matches("# TYPE " .. name .. " ", text)
    end
    assert.matches('te_request_count{path="/embed"} %d', text)
    local page, status, headers = s:get "/ui"
    assert.equal(200, status)
    assert.matches("^<!doctype html>", page)
    assert.matches("default%-src 'none'", headers["content-security-policy"])
  end)
end)

describe("serve's process", function()
  local s, path

  before_each(function()
    path = os.tmpname()
    perigee.load(FOLDER .. "sentence"):quantize({ activations = "dynamic" }):save(path)
  end)

  after_each(function()
    if s then
      s:stop()
      s = nil
    end
    os.remove(path)
    files.clean()
  end)

  it("asks for its key", function()
    s = server.start({ "m=" .. path }, "--workers 1 --api-key-file " .. files.write "secret-1\n")
    local answer, status = s:post("/embed", { inputs = "a" })
    assert.equal(401, status)
    assert.matches("the API key is missing; send the header Authorization: Bearer KEY", answer.error)
    for _, key in ipairs { "secret-2", "secret", "secret-11", "" } do
      assert.equal(401, select(2, s:post("/embed", { inputs = "a" }, ("-H 'Authorization: Bearer %s'"):format(key))))
    end
    assert.equal(200, select(2, s:post("/embed", { inputs = "a" }, "-H 'Authorization: Bearer secret-1'")))
    assert.equal(401, select(2, s:get "/metrics"))
    assert.equal(200, select(2, s:get "/health"))
  end)

  it("opens another artifact when it is told to, and keeps the old one if the new one is broken", function()
    s = server.start({ "m=" .. path }, "--workers 1")
    local before = s:post("/embed", { inputs = "a" })
    local other = os.tmpname()
    perigee.load(FOLDER .. "sentence"):save(other)
    assert(os.rename(other, path))
    ffi.C.kill(s.pid, 1)
    local after = server.wait(10, function()
      local answer = s:post("/embed", { inputs = "a" })
      return type(answer) == "table" and answer[1] and answer[1][1] ~= before[1][1] and answer
    end)
    assert.truthy(after)
    files.put(other, "no artifact")
    assert(os.rename(other, path))
    ffi.C.kill(s.pid, 1)
    assert.truthy(server.wait(10, function() return s:said():find "init_by_lua error" end))
    assert.same(after, (s:post("/embed", { inputs = "a" })))
  end)

  it("has its run folder and its port alone", function()
    s = server.start({ "m=" .. path }, "--workers 1")
    local command = "cd %s; PERIGEE_LIB=$PWD/build/libperigee.so timeout 20 luajit recipes/serve.lua --port %d --run %s %s"
    local same = files.bash(command:format(files.top(), s.port, s.run, path), 30)
    assert.matches("a server with the run folder .* is at work as process %d+", same)
    local other = files.folder {}
    assert(os.execute("chmod 700 " .. other) == 0)
    local text, status = files.bash(command:format(files.top(), s.port, other, path), 30)
    assert.matches("Address already in use", text)
    assert.truthy(status ~= 0)
    assert.equal("m", s:get("/info").model_id)
  end)

  it("starts a worker again that was killed", function()
    s = server.start({ "m=" .. path }, "--workers 1")
    local pid = tonumber(s:said():match ".*start worker process (%d+)")
    ffi.C.kill(pid, 9)
    assert.truthy(server.wait(10, function() return select(2, s:post("/embed", { inputs = "a" })) == 200 end))
  end)

  it("ends after the requests at work", function()
    s = server.start({ "m=" .. path }, "--workers 1")
    local list = {}
    for i = 1, 2000 do
      list[i] = ("word "):rep(30)
    end
    local out = files.write ""
    local body = files.write(cjson.encode { inputs = list })
    os.execute(("curl -s -m 60 --data-binary @%s http://127.0.0.1:%d/embed > %s &"):format(body, s.port, out))
    server.wait(5, function() return s:get("/metrics"):match "te_request_count{path=\"/embed\"} 1" end)
    assert.truthy(s:stop(3))
    local file = assert(io.open(out))
    assert.equal(2000, #cjson.decode(file:read "*a"))
    file:close()
    s = nil
  end)

  it("does not start with what is wrong", function()
    for _, case in ipairs {
      { "", "missing" }, { "/nowhere.safetensors", "cannot open" }, { path .. " " .. path, "two models have the name" },
      { "--run /etc " .. path, "expected user" }, { "/", "no name" },
      { "--host '127.0.0.1; x' " .. path, "expected letters" }, { "--port 0 " .. path, "port" },
    } do
      local text, status = files.bash(("cd %s; PERIGEE_LIB=$PWD/build/libperigee.so luajit recipes/serve.lua --check %s"):format(
        files.top(), case[1]), 20)
      assert.truthy(status ~= 0, case[1])
      assert.matches(case[2], text)
    end
  end)
end)
