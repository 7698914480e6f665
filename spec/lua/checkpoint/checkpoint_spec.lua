-- perigee.checkpoint: folders, from small ones written here to the real ones that this machine has.
local checkpoint = require "perigee.checkpoint"
local definitions = require "perigee.checkpoint.definitions"
local files = require "spec.support.files"
local json = require "perigee.base.json"
local models = require "spec.support.models"

local BERT = '{"model_type": "bert"}'

-- A safetensors file with a U8 vector of one element for each name. The value is the index of the name in the list.
local function weights(names)
  local list = {}
  for i, name in ipairs(names) do
    list[i] = { name, "U8", { 1 }, string.char(i) }
  end
  return files.pack(list)
end

-- Opens a folder with these files. The default config.json has the model_type bert.
local function open(contents)
  contents["config.json"] = contents["config.json"] or '{"model_type": "bert"}'
  contents["model.safetensors"] = contents["model.safetensors"] or weights { "a" }
  local dir = files.folder(contents)
  return checkpoint.open(dir), dir
end

-- The error of opening a folder with these files. DIR replaces the folder's path.
local function refused(contents)
  local dir = files.folder(contents)
  local ok, message = pcall(checkpoint.open, dir)
  assert.is_false(ok)
  return (message:gsub(dir:gsub("%p", "%%%0"), "DIR"))
end

local function failure(f)
  local ok, message = pcall(f)
  assert.is_false(ok)
  return (message:gsub("'/tmp/[%w_]*", "'DIR"))
end

local function number(c, name)
  local t = c:tensor(name)
  return t and t[1]
end

describe("perigee.checkpoint", function()
  after_each(files.clean)

  describe("opens", function()
    it("a folder, however its path is written", function()
      local c, dir = open {}
      assert.equal("bert", c.config.model_type)
      assert.equal(dir .. "/config.json", c.files.config)
      assert.same({ dir .. "/model.safetensors" }, c.files.weights)
      assert.equal(1, number(checkpoint.open(dir .. "/"), "a"))
      assert.equal(1, number(checkpoint.open(dir .. "//"), "a"))
      local link = files.folder {} .. "/link"
      os.execute(("ln -s %s %s"):format(dir, link))
      assert.equal(1, number(checkpoint.open(link), "a"))
      assert.equal(1, number(checkpoint.open("/tmp/../" .. dir), "a"))
    end)

    it("nothing that is no checkpoint", function()
      assert.equal("cannot open '/nowhere': No such file or directory. Expected the folder of a checkpoint on this "
        .. "machine: nothing is downloaded", failure(function() checkpoint.open "/nowhere" end))
      assert.equal("'DIR' is a file, expected the folder of a checkpoint",
        failure(function() checkpoint.open(files.write "x") end))
      assert.equal("'DIR' is not a checkpoint: it has no config.json. Expected: config.json, model.safetensors (or its shards "
        .. "and their index), tokenizer.json or vocab.txt", refused { ["model.safetensors"] = weights { "a" } })
      assert.truthy(failure(function() checkpoint.open "" end)
        :find "checkpoint_spec.lua:%d+: the checkpoint is the string '', expected the path of a folder$")
      assert.truthy(failure(function() checkpoint.tokenizer(7) end)
        :find "checkpoint_spec.lua:%d+: the checkpoint is 7, expected the path of a folder$")
      assert.truthy(failure(function() checkpoint.open() end):find ": the checkpoint is missing, expected the path of a folder$")
    end)

    it("nothing without weights", function()
      assert.equal("'DIR' has no weights: neither model.safetensors nor model.safetensors.index.json",
        refused { ["config.json"] = BERT })
      assert.equal(("'DIR/config.json': model_type is the string 'bart', expected %s (did you mean \"bert\"?); "
        .. "perigee.register_model makes others known, as recipes/register_model.lua shows"):format(
        table.concat(definitions.names(), ", ")), refused { ["config.json"] = '{"model_type": "bart"}' })
    end)

    it("no weights in other forms, but says what to do", function()
      for _, name in ipairs { "pytorch_model.bin", "pytorch_model.bin.index.json" } do
        local message = refused { ["config.json"] = BERT, [name] = "x" }
        assert.truthy(message:find(("'DIR' has its weights as %s, which is not supported, only model.safetensors. To convert "
          .. "them"):format(name), 1, true))
        assert.truthy(message:find('python3 -c "import glob, torch; from safetensors.torch import save_file', 1, true))
      end
      for name, advice in pairs {
        ["model.onnx"] = "Take the checkpoint", ["onnx/model.onnx"] = "Take the checkpoint", ["tf_model.h5"] = "(from_tf=True)",
        ["flax_model.msgpack"] = "(from_flax=True)", ["openvino_model.bin"] = "Take the checkpoint",
      } do
        local message = refused { ["config.json"] = BERT, [name] = "x" }
        assert.truthy(message:find(("'DIR' has its weights as %s, which"):format(name), 1, true), message)
        assert.truthy(message:find(advice, 1, true), message)
      end
    end)

    it("files of another kind, and names the kind and what to do", function()
      local pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daa"
        .. "aa5e2ca24d17e239\nsize 12345\n"
      for bytes, what in pairs {
        [pointer] = "it is a pointer of Git LFS, not the file itself: run `git lfs pull` in the folder",
        ["\n<!DOCTYPE html>\n<html><body>Sign in</body></html>"] = "it is an HTML or XML page: download the file itself",
        ["<html>"] = "it is an HTML or XML page",
        ["GGUF\3\0\0\0\0\0\0\0"] = "it is a GGUF file: take the checkpoint that it was made from",
        ["PK\3\4\0\0\8\8archive/data.pkl"] = "it is a ZIP archive, as PyTorch writes: PyTorch's weights have to be converted",
        ["\128\2\138\10l\252\156F\249 j\168P\25."] = "it is a pickle of Python",
        ["\137HDF\r\n\26\n"] = "it is an HDF5 file, as TensorFlow writes",
        ["\8\7\18\7pytorch"] = "it is an ONNX model",
        ["\31\139\8\0\0\0\0\0"] = "it is a gzip archive: unpack it",
        [""] = "it is empty: download it again",
      } do
        for name, contents in pairs {
          ["model.safetensors"] = { ["config.json"] = BERT, ["model.safetensors"] = bytes },
          ["config.json"] = { ["config.json"] = bytes, ["model.safetensors"] = weights { "a" } },
          ["modules.json"] = { ["config.json"] = BERT, ["modules.json"] = bytes, ["model.safetensors"] = weights { "a" } },
        } do
          local message = refused(contents)
          assert.truthy(message:find("^'DIR/" .. name), message)
          assert.truthy(message:find("; " .. what, 1, true)
            or message:find "^'[^']*' is empty: download it again$", message)
          assert.is_nil(message:find "empty.*empty")
        end
      end
    end)

    it("no malformed files", function()
      assert.equal("'DIR/config.json' holds a list, expected an object",
        refused { ["config.json"] = "[]", ["model.safetensors"] = weights { "a" } })
      assert.truthy(refused { ["config.json"] = "{", ["model.safetensors"] = weights { "a" } }
        :find "^'DIR/config.json' is not valid JSON: ")
      assert.equal("'DIR/model.safetensors' has 1 bytes, fewer than the 8 of the header's length",
        refused { ["config.json"] = "{}", ["model.safetensors"] = "x" })
    end)
  end)

  describe("gives tensors", function()
    it("with and without the model's prefix", function()
      local plain = open { ["model.safetensors"] = weights { "embeddings.word", "pooler.dense.weight" } }
      local prefixed = open {
        ["model.safetensors"] = weights { "bert.embeddings.word", "bert.pooler.dense.weight", "classifier.weight" },
      }
      assert.same({ "embeddings.word", "pooler.dense.weight" }, plain:names())
      assert.same({ "embeddings.word", "pooler.dense.weight", "classifier.weight" }, prefixed:names())
      assert.same({ 1, 2 }, { number(plain, "embeddings.word"), number(plain, "pooler.dense.weight") })
      assert.same({ 1, 2, 3 }, { number(prefixed, "embeddings.word"), number(prefixed, "pooler.dense.weight"),
        number(prefixed, "classifier.weight") })
      assert.is_nil(plain:tensor "classifier.weight")
      assert.is_nil(prefixed:tensor "bert.embeddings.word")
    end)

    it("from the prefixed name where both are there", function()
      for _, order in ipairs { { "bert.x", "x" }, { "x", "bert.x" } } do
        local c = open { ["model.safetensors"] = weights(order) }
        assert.same({ "x" }, c:names())
        assert.equal(order[1] == "bert.x" and 1 or 2, number(c, "x"))
        assert.same({ "x" }, c:unused())
      end
    end)

    it("by the prefix of the model's type", function()
      local c = open { ["config.json"] = '{"model_type": "xlm-roberta"}',
        ["model.safetensors"] = weights { "roberta.x", "bert.y" } }
      assert.same({ "x", "bert.y" }, c:names())
      assert.same({ "y" }, open({ ["config.json"] = '{"model_type": "distilbert"}',
        ["model.safetensors"] = weights { "distilbert.y" } }):names())
      assert.same({ "bert.y" }, open({ ["config.json"] = "{}", ["model.safetensors"] = weights { "bert.y" } }):names())
    end)

    it("under their modern names", function()
      local c = open {
        ["model.safetensors"] = weights { "bert.n.LayerNorm.gamma", "bert.n.LayerNorm.beta", "m.weight", "m.gamma" },
      }
      assert.same({ "n.LayerNorm.weight", "n.LayerNorm.bias", "m.weight" }, c:names())
      assert.same({ 1, 2, 3 }, { number(c, "n.LayerNorm.weight"), number(c, "n.LayerNorm.bias"), number(c, "m.weight") })
      assert.is_nil(c:tensor "n.LayerNorm.gamma")
      assert.same({ "m.gamma" }, c:unused())
    end)

    it("without buffers", function()
      local c = open { ["model.safetensors"] = weights { "embeddings.position_ids", "bert.embeddings.position_ids", "a",
        "embeddings.token_type_ids" } }
      assert.same({ "a" }, c:names())
      assert.same({ "a" }, c:unused())
      assert.is_nil(c:tensor "embeddings.position_ids")
    end)

    it("and lists the tensors that were never asked for", function()
      local c = open { ["model.safetensors"] = weights { "bert.a", "b", "bert.n.gamma" } }
      c:tensor "a"
      assert.same({ "b", "bert.n.gamma" }, c:unused())
      c:tensor "n.weight"
      c:tensor "nothing"
      assert.same({ "b" }, c:unused())
    end)

    it("that outlive it", function()
      local c = open {}
      local t = c:tensor "a"
      c:close()
      assert.equal(1, t[1])
      assert.is_nil(c:tensor "a")
    end)

    it("or says what it cannot read of them", function()
      local c = open { ["model.safetensors"] = files.pack { { "a", "U16", { 1 }, "xx" } } }
      assert.equal("'DIR/model.safetensors': tensor 'a' is of type U16, which is not supported",
        failure(function() c:tensor "a" end))
    end)
  end)

  describe("reads shards", function()
    -- A folder of two shards with this weight_map.
    local function shards(map)
      return {
        ["config.json"] = '{"model_type": "bert"}',
        ["model.safetensors.index.json"] = ('{"metadata": {"total_size": 4}, "weight_map": %s}'):format(map),
        ["one.safetensors"] = weights { "bert.a", "bert.b" },
        ["two.safetensors"] = weights { "bert.c", "d", "extra" },
      }
    end

    it("by their index, and only what it names", function()
      local dir = files.folder(shards('{"bert.a": "one.safetensors", "bert.b": "one.safetensors", "bert.c": "two.safetensors", '
        .. '"d": "two.safetensors"}'))
      local c = checkpoint.open(dir)
      assert.same({ "a", "b", "c", "d" }, c:names())
      assert.same({ 1, 2, 1, 2 }, { number(c, "a"), number(c, "b"), number(c, "c"), number(c, "d") })
      assert.same({ dir .. "/one.safetensors", dir .. "/two.safetensors" }, c.files.weights)
    end)

    it("unless the index is wrong", function()
      local INDEX = "'DIR/model.safetensors.index.json': "
      assert.equal(INDEX .. "the shard 'three.safetensors' of tensor 'bert.c' is missing",
        refused(shards '{"bert.a": "one.safetensors", "bert.c": "three.safetensors"}'))
      assert.equal(INDEX .. "the shard 'four.safetensors' of tensor 'bert.a', the shard 'three.safetensors' of tensor 'bert.c' "
        .. "are missing",
        refused(shards '{"bert.a": "four.safetensors", "bert.c": "three.safetensors", "d": "three.safetensors"}'))
      assert.equal(INDEX .. "tensor 'bert.c' should be in 'one.safetensors', which has no such tensor",
        refused(shards '{"bert.a": "one.safetensors", "bert.c": "one.safetensors"}'))
      for _, name in ipairs { "../one.safetensors", "/etc/passwd", "..", "", "a/b", "x\\u0000" } do
        assert.truthy(refused(shards(('{"bert.a": "%s"}'):format(name)))
          :find("tensor 'bert.a' is the string '.*', expected the name of a file in the same folder$"))
      end
      assert.equal(INDEX .. "the shard of tensor 'bert.a' is 3, expected the name of a file in the same folder",
        refused(shards '{"bert.a": 3}'))
      assert.equal(INDEX .. "weight_map is null, expected an object of tensor name: file name", refused(shards "null"))
      local without = shards "{}"
      without["model.safetensors.index.json"] = "{}"
      assert.equal(INDEX .. "weight_map is missing, expected an object of tensor name: file name", refused(without))
    end)

    it("only where there is no whole file", function()
      local contents = shards '{"bert.a": "one.safetensors"}'
      contents["model.safetensors"] = weights { "x", "a" }
      assert.equal(2, number(checkpoint.open(files.folder(contents)), "a"))
    end)
  end)

  describe("knows the limit", function()
    local function limit(positions, length, sequence, more)
      local contents = {
        ["config.json"] = ("{%s}"):format(positions and '"max_position_embeddings": ' .. positions or ""),
        ["tokenizer_config.json"] = length and ('{"model_max_length": %s}'):format(length),
        ["sentence_bert_config.json"] = sequence and ('{"max_seq_length": %s}'):format(sequence),
        ["modules.json"] = '[{"type": "sentence_transformers.models.Transformer", "path": ""}]',
      }
      for name, bytes in pairs(more or {}) do
        contents[name] = bytes or nil
      end
      return open(contents):limit()
    end

    -- spec/golden/make_companions.py has the same cases with the answers of sentence-transformers.
    it("as sentence-transformers has it: max_seq_length goes before the smallest of the others", function()
      assert.equal(512, limit("512", "512", nil))
      assert.equal(256, limit("512", "512", "256"))
      assert.equal(256, limit("512", "128", "256"))
      assert.equal(600, limit("512", "128", "600"))
      assert.equal(64, limit("64", "1000000000000000019884624838656", "null"))
      assert.equal(20, limit("64", nil, nil, { ["tokenizer_config.json"] = '{"max_len": 20}' }))
      assert.equal(30, limit("64", nil, nil, { ["tokenizer_config.json"] = '{"max_len": 20, "model_max_length": 30}' }))
      assert.equal(256, limit(nil, nil, "256"))
      assert.is_nil(limit())
      local function own(text)
        return { ["sentence_bert_config.json"] = text }
      end
      assert.equal(30, limit("64", "40", nil, own '{"max_seq_length": 60, "tokenizer_args": {"model_max_length": 30}}'))
      assert.equal(31, limit("64", "40", nil, own '{"processor_kwargs": {"model_max_length": 31}, "max_seq_length": 60}'))
    end)

    it("from the first file of these names that is not empty, and only if there is a modules.json", function()
      for _, name in ipairs { "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet" } do
        assert.equal(60, limit("64", "40", nil, {
          ["sentence_" .. name .. "_config.json"] = '{"max_seq_length": 60}', ["sentence_bert_config.json"] = "{}",
        }))
      end
      assert.equal(61, limit("64", "40", "61", { ["sentence_roberta_config.json"] = '{"max_seq_length": 60}' }))
      assert.equal(40, limit("64", "40", "60", { ["modules.json"] = false }))
    end)

    it("and lists the files that sentence-transformers does not read without modules.json", function()
      local c = open { ["sentence_roberta_config.json"] = "{}", ["config_sentence_transformers.json"] = "{}" }
      local why = ": sentence-transformers reads this file only if there is a modules.json"
      assert.equal("all keys of config_sentence_transformers.json" .. why .. "\nall keys of sentence_roberta_config.json" .. why,
        tostring(c.ignored))
    end)

    it("and decodes that file once", function()
      local decode, times = json.object, 0
      finally(function() json.object = decode end)
      function json.object(path, ...)
        times = times + (path:find "sentence_bert_config.json$" and 1 or 0)
        return decode(path, ...)
      end
      assert.equal(60, limit("64", "40", "60"))
      assert.equal(1, times)
    end)

    it("and refuses keys of that file that change what a model computes, or that it has not", function()
      local function refusal(text)
        return failure(function() limit(nil, nil, nil, { ["sentence_bert_config.json"] = text }) end)
          :gsub("^'DIR/sentence_bert_config.json': ", "")
      end
      for text, message in pairs {
        ['{"query_length": 32}'] = "query_length is 32, expected null: encoding by task is not supported",
        ['{"document_length": 180}'] = "document_length is 180, expected null",
        ['{"query_expansion": {"length": 32}}'] = "query_expansion is a list or an object, expected null: ColBERT's",
        ['{"tokenizer_name_or_path": "x"}'] = "tokenizer_name_or_path is the string 'x', expected null",
        ['{"transformer_task": "fill-mask"}'] = "transformer_task is the string 'fill-mask', expected feature-extraction or",
        ['{"module_output_name": "x"}'] = "module_output_name is the string 'x', expected token_embeddings or scores",
        ['{"modality_config": {"message": {}}}'] = "modality_config has the modality 'message', expected 'text'",
        ['{"modality_config": {"text": {"method": "encode"}}}'] = "modality_config says that a text is read by something else",
        ['{"processing_kwargs": {"text": {"max_length": 3}}}'] = "processing_kwargs has arguments of the tokenizer",
        ['{"model_args": {"gguf_file": "x"}}'] = "model_args.gguf_file is the string 'x', which is not supported",
        ['{"model_kwargs": 3}'] = "model_kwargs is 3, expected an object",
        ['{"max_seq_len": 3}'] = "max_seq_len is no key of this file; it may have config_args, config_kwargs, do_lower_case",
      } do
        local came = refusal(text)
        assert.truthy(came:find(message, 1, true), came)
      end
      assert.equal(60, limit(nil, nil, nil, { ["sentence_bert_config.json"] = '{"max_seq_length": 60, "query_length": null, '
        .. '"modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}, "image": 3}, '
        .. '"module_output_name": "token_embeddings", "processing_kwargs": {}, "unpad_inputs": true, '
        .. '"model_args": {"attn_implementation": "sdpa"}, "transformer_task": "feature-extraction"}' }))
    end)

    it("and takes values that go over those of config.json and tokenizer_config.json", function()
      local c = open {
        ["modules.json"] = '[{"type": "sentence_transformers.models.Transformer", "path": ""}]',
        ["tokenizer_config.json"] = '{"do_lower_case": true}',
        ["sentence_bert_config.json"] = '{"config_args": {"hidden_act": "relu", "revision": "x"}, '
          .. '"tokenizer_args": {"do_lower_case": false}, "model_kwargs": {"torch_dtype": "float16"}}',
      }
      assert.same({ "relu", nil, "bert" }, { c.config.hidden_act, c.config.revision, c.config.model_type })
      assert.is_false(c.tokenizer_config.do_lower_case)
      assert.equal("model_kwargs.torch_dtype of sentence_bert_config.json: settings say how a model computes: FP32 or INT8",
        tostring(c.ignored))
    end)

    it("and refuses what is no limit", function()
      assert.equal("'DIR/config.json': max_position_embeddings is 0, expected an integer of at least 1",
        failure(function() limit "0" end))
      assert.equal("'DIR/tokenizer_config.json': model_max_length is the string '512', expected an integer of at least 1",
        failure(function() limit("512", '"512"') end))
      assert.equal("'DIR/sentence_bert_config.json': max_seq_length is 1.5, expected an integer of at least 1",
        failure(function() limit("512", nil, "1.5") end))
      assert.equal("'DIR/sentence_bert_config.json': max_seq_length is -1, expected an integer of at least 1",
        failure(function() limit("512", nil, "-1") end))
    end)
  end)

  describe("knows the tokenizer's files", function()
    it("and where they are", function()
      local c, dir = open { ["tokenizer.json"] = "{}", ["vocab.txt"] = "[UNK]\n", ["added_tokens.json"] = "{}" }
      local files_of = c:tokenizer_files()
      assert.same({ dir .. "/tokenizer.json", dir .. "/vocab.txt", dir .. "/added_tokens.json" },
        { files_of.tokenizer, files_of.vocabulary, files_of.added_tokens })
      assert.is_nil(files_of.pieces)
    end)

    it("and that sentence-transformers may lower-case too", function()
      for sentence, lower in pairs { ["true"] = true, ["false"] = false, ["null"] = false } do
        local c = open { ["modules.json"] = "[]", ["sentence_bert_config.json"] = ('{"do_lower_case": %s}'):format(sentence) }
        assert.equal(lower, c:tokenizer_files().lower)
      end
    end)
  end)

  describe("knows the pooling", function()
    local CHAIN = { "Transformer", "Pooling", "Normalize" }

    local function modules(names, paths)
      local list = {}
      for i, name in ipairs(names) do
        local path = paths and paths[i] or i == 1 and "" or ("%d_%s"):format(i - 1, name)
        list[i] = ('{"idx": %d, "path": "%s", "type": "sentence_transformers.models.%s"}'):format(i - 1, path, name)
      end
      return "[" .. table.concat(list, ",") .. "]"
    end

    local function pooling(names, config)
      return (open { ["modules.json"] = modules(names), ["1_Pooling/config.json"] = config or "{}" }):pooling()
    end

    it("as modules.json and the pooling's config say", function()
      assert.same({ modes = { "mean" }, normalize = true }, pooling(CHAIN, '{"pooling_mode_mean_tokens": true}'))
      assert.same({ modes = { "mean" }, normalize = false }, pooling({ "Transformer", "Pooling" }, "{}"))
      assert.same({ modes = { "first" }, normalize = true },
        pooling(CHAIN, '{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}'))
      assert.same({ modes = { "last" }, normalize = true },
        pooling(CHAIN, '{"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": false}'))
      assert.same({ modes = { "first", "max", "mean_sqrt" }, normalize = true }, pooling(CHAIN,
        '{"pooling_mode_cls_token": true, "pooling_mode_mean_sqrt_len_tokens": true, "pooling_mode_max_tokens": true}'))
      assert.same({ modes = { "first" }, normalize = true }, pooling(CHAIN, '{"pooling_mode": "cls"}'))
      assert.same({ modes = { "first" }, normalize = true }, pooling(CHAIN,
        '{"pooling_mode": ["cls"], "pooling_mode_max_tokens": true, "include_prompt": true, "embedding_dimension": 3}'))
      assert.same({ modes = { "weighted", "last", "first" }, normalize = true, skip_prompt = true }, pooling(CHAIN,
        '{"pooling_mode": ["weightedmean", "lasttoken", "cls"], "include_prompt": false}'))
      assert.same({ modes = { "weighted" }, normalize = true }, pooling(CHAIN, '{"pooling_mode_weightedmean_tokens": true}'))
      assert.same({ modes = { "mean" }, normalize = true }, pooling(CHAIN, '{"pooling_mode_mean_tokens": false}'))
    end)

    it("as the last token for a model that generates text, and an error for a CrossEncoder", function()
      local function alone(config, more)
        local contents = { ["config.json"] = config }
        for name, bytes in pairs(more or {}) do
          contents[name] = bytes
        end
        return open(contents):pooling()
      end
      assert.same({ modes = { "last" }, normalize = false }, alone '{"architectures": ["RobertaForCausalLM"]}')
      assert.same({ modes = { "mean" }, normalize = false },
        alone '{"architectures": ["RobertaForCausalLM"], "is_causal": false}')
      assert.equal("'DIR/config_sentence_transformers.json' is of a CrossEncoder, which gives scores of pairs (rerank) and no "
        .. "vectors of texts", failure(function()
        alone(BERT, {
          ["modules.json"] = modules(CHAIN), ["config_sentence_transformers.json"] = '{"model_type": "CrossEncoder"}',
        })
      end))
    end)

    it("as the mean, not scaled, if nothing says otherwise", function()
      assert.same({ modes = { "mean" }, normalize = false }, open({}):pooling())
    end)

    it("and names what is not supported, when it is asked", function()
      assert.equal("'DIR/modules.json' lists no modules, expected Transformer, Pooling and possibly Dense, LayerNorm, Dropout, "
        .. "Normalize", failure(function() pooling {} end))
      assert.equal("'DIR/modules.json': there is no Pooling after the Transformer, which is not supported, only Transformer, "
        .. "Pooling and, after these, Dense, LayerNorm, Dropout and Normalize", failure(function() pooling { "Transformer" } end))
      for place, chain in pairs { { "Transformer", "Normalize", "Pooling" }, { "Transformer", "WeightedLayerPooling", "Pooling" },
        { "Transformer", "CNN", "Pooling" }, { "Transformer", "LSTM", "Pooling" }, { "Transformer", "Dense", "Pooling" } } do
        assert.equal(("'DIR/modules.json': module 2, %s, is not supported at this place"):format(chain[2]),
          failure(function() pooling(chain) end):match "^(.-),? only", place)
      end
      for _, first in ipairs { "Pooling", "BoW", "CLIPModel", "WordEmbeddings", "StaticEmbedding", "Router" } do
        assert.truthy(failure(function() pooling { first, "Pooling" } end)
          :find(("module 1, %s, is not supported at this place"):format(first), 1, true))
      end
      assert.truthy(failure(function() pooling { "Transformer", "Pooling", "Pooling" } end):find "module 3, Pooling, is not")
      local foreign = modules({ "Transformer", "Pooling" }):gsub("sentence_transformers.models.Pooling", "pylate.models.Pooling")
      assert.equal("'DIR/modules.json': module 2 is of type pylate.models.Pooling, code that is no part of "
        .. "sentence-transformers, which is not supported",
        failure(function() open({ ["modules.json"] = foreign }):pooling() end))
      for kind, text in pairs { SparseEncoder = '{"model_type": "SparseEncoder"}', ColBERT = '{"query_prefix": "[Q] "}',
        MultiVectorEncoder = '{"model_type": "MultiVectorEncoder"}' } do
        local c = open { ["modules.json"] = modules(CHAIN), ["config_sentence_transformers.json"] = text }
        assert.equal(("'DIR/config_sentence_transformers.json' is of a %s, which is not supported; expected a "
          .. "SentenceTransformer or a CrossEncoder"):format(kind), failure(function() c:pooling() end))
      end
      assert.equal("'DIR/1_Pooling/config.json': pooling_mode is the string 'best', expected cls, lasttoken, max, mean, "
        .. "mean_sqrt_len_tokens, weightedmean, or a list of these",
        failure(function() pooling(CHAIN, '{"pooling_mode": ["cls", "best"]}') end))
      assert.truthy(failure(function() pooling(CHAIN, '{"pooling_mod": "cls"}') end):find "pooling_mod is no key of this file")
      assert.equal("'DIR/1_Pooling/config.json': pooling_mode_max_tokens is 1, expected true or false",
        failure(function() pooling(CHAIN, '{"pooling_mode_max_tokens": 1}') end))
      local missing = open { ["modules.json"] = modules(CHAIN) }
      assert.equal("cannot open 'DIR/1_Pooling/config.json': No such file or directory",
        failure(function() missing:pooling() end))
    end)

    it("and finds the transformer in a folder of its own", function()
      local c = checkpoint.open(files.folder {
        ["modules.json"] = modules(CHAIN, { "0_Transformer" }), ["1_Pooling/config.json"] = "{}",
        ["0_Transformer/config.json"] = '{"model_type": "bert", "max_position_embeddings": 64}',
        ["0_Transformer/model.safetensors"] = weights { "bert.a" },
        ["0_Transformer/sentence_bert_config.json"] = '{"max_seq_length": 32}',
      })
      assert.equal(1, number(c, "a"))
      assert.equal(32, c:limit())
      assert.is_true(c:pooling().normalize)
    end)

    it("and refuses modules that lead elsewhere", function()
      for _, path in ipairs { "../x", "/x", "a/../../x" } do
        assert.equal(("'DIR/modules.json': module 2 is in '%s', expected a folder inside this one"):format(path),
          refused { ["config.json"] = "{}", ["modules.json"] = modules(CHAIN, { "", path }) })
      end
      assert.equal("'DIR/modules.json': module 1 is not an object with the strings type and path",
        refused { ["config.json"] = "{}", ["modules.json"] = "[3]" })
    end)
  end)

  describe("opens real ones:", function()
    it("the small ones of this repository", function()
      for _, name in ipairs(models.small) do
        local c = checkpoint.open(models.path(name))
        local word = c:tensor "embeddings.word_embeddings.weight"
        local config = c.config -- dim: DistilBERT's word for it; embedding_size: ELECTRA's, where they are narrower
        assert.same({ config.vocab_size, config.embedding_size or config.hidden_size or config.dim }, word.shape)
        assert.is_nil(word:first_nonfinite())
        assert.equal(#c:names() - 1, #c:unused())
      end
      assert.same({ modes = { "mean" }, normalize = true }, checkpoint.open(models.path "embedder"):pooling())
    end)

    local demo, why = models.demo()
    it("the demo's", function()
      if not demo then
        pending(why)
        return
      end
      local c = checkpoint.open(demo)
      assert.equal(103, #c:names()) -- and a buffer
      assert.equal(256, c:limit())
      assert.same({ modes = { "mean" }, normalize = true }, c:pooling())
      for _, name in ipairs(c:names()) do
        assert.is_nil(c:tensor(name):first_nonfinite())
      end
      assert.same({}, c:unused())
    end)

    local tuned, missing = models.tuned "minilm-sst2"
    it("a fine-tuned one in F16, of two shards", function()
      if not tuned then
        pending(missing)
        return
      end
      local c = checkpoint.open(tuned)
      assert.equal(2, #c.files.weights)
      assert.equal("F16", c:tensor("encoder.layer.5.output.dense.weight").dtype)
      assert.same({ 2, 384 }, c:tensor("classifier.weight").shape)
    end)
  end)
end)
