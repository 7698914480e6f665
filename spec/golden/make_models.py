#!/usr/bin/env python3
"""Makes spec/golden's checkpoints, and the values that transformers computes from them.

  make_models.py small          checkpoints/NAME/ (random weights, fixed seeds) with values.safetensors
  make_models.py heads [NAME...]
                                checkpoints/NAME/ of every architecture, or of those named: all heads in one file, with
                                values.safetensors
  make_models.py mpnet FOLDER   mpnet/ from all-mpnet-base-v2 in FOLDER: texts.json, values.safetensors
  make_models.py demo FOLDER    minilm/ from the demo checkpoint in FOLDER (all-MiniLM-L6-v2): texts.json, values.safetensors

pip install torch==2.15.0 transformers==5.24.0 tokenizers safetensors==0.8.0 numpy. Everything is computed in float32 with eager
attention. Another version or CPU changes only the last bits, which the specs' tolerance covers: do not check in such changes.

values.safetensors, for sequence i (from 0): i/ids, i/types I32 [T]; i/rows I32: the rows that are kept; i/embedding and i/layer.j F32
[rows][H]; i/pooled.MODE F32 [H] (mean, first, max, mean_sqrt, last); i/pooler F32 [H]; i/logits F32 [labels]. Sequences run as one
padded batch with its attention mask, as users of transformers run them. i/int8.MODE F32 [rows][H] (static, dynamic): the last
hidden states with the INT8 linears of simulate.py, calibrated on these sequences, alpha 0.5. With `heads`:
i/classify F32 [labels], i/qa F32 [rows][2], i/ner F32 [rows][labels], and i/fill_mask F32 [marks][vocabulary] of the tokens
i/marks I32.
"""
import json, os, sys

for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(name, None)
os.environ["HF_HUB_OFFLINE"] = "1"
import numpy as np
import torch
import transformers
from safetensors.torch import save_file
from transformers import (AutoTokenizer, BertConfig, BertForSequenceClassification, BertModel, DistilBertConfig,
                          DistilBertForSequenceClassification, XLMRobertaConfig, XLMRobertaForSequenceClassification)

import simulate

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = """the a of to and in is it you that he was for on are with as his they be at one have this from or had by hot but some what there
 we can out other were all your when up use word how said an each she which do their time if will way about many then them would
 write like so these her long make thing see him two has look more day could go come did my sound no most number who over know
 water than call first people may down side been now find ##s ##ed ##ing ##er ##ly ##est ##ness un ##able re ##in ##o ##a ##e
 . , ? ! ' - : 0 1 2 3 4 5 6 7 8 9 b c d e f g h i j k l m n o p q r s t u v w x y z""".split()
TEXTS = [("how many people can see the water?", "they look for it all day."), ("no", None), ("", None), ("", "the first word"),
         ("Each of them said: it was Hotter than the other one!", "it was not."), ("unlikely things make people look unsound", None)]
POOLING = {"first": "pooling_mode_cls_token", "mean": "pooling_mode_mean_tokens", "max": "pooling_mode_max_tokens",
           "mean_sqrt": "pooling_mode_mean_sqrt_len_tokens", "last": "pooling_mode_lasttoken"}

# name: hidden, heads, intermediate, layers, activation, token types, data type, then what is special about it
SMALL = {
    "gelu": dict(h=64, a=4, i=150, l=2, act="gelu", types=2, dtype="F16", outliers=True),
    "gelu-new": dict(h=120, a=5, i=77, l=1, act="gelu_new", types=1, dtype="F16", prefix="bert.", buffers=True),
    "gelu-tanh": dict(h=40, a=5, i=161, l=3, act="gelu_pytorch_tanh", types=2, dtype="F32", prefix="bert.", gamma=True),
    "relu": dict(h=48, a=2, i=100, l=2, act="relu", types=2, dtype="BF16", shards=2),
    "tiny": dict(h=15, a=5, i=7, l=1, act="gelu", types=1, dtype="F32", pooler=False),
    "long": dict(h=16, a=2, i=24, l=2, act="gelu", types=2, dtype="F32", positions=512, lengths=[1, 512, 65], pooler=False),
    "denormals": dict(h=32, a=2, i=48, l=1, act="gelu", types=2, dtype="F16", denormals=True, pooler=False),
    "embedder": dict(h=32, a=4, i=64, l=2, act="gelu", types=2, dtype="F32", texts=True, pool="mean", pooler=False),
    "pairs": dict(h=32, a=4, i=64, l=2, act="gelu", types=2, dtype="F16", texts=True, labels=3, prefix="bert."),
    "regression": dict(h=24, a=3, i=50, l=1, act="gelu_new", types=2, dtype="F32", texts=True, labels=1, prefix="bert."),
    "distilbert": dict(kind="distilbert", h=32, a=4, i=70, l=3, act="gelu", types=1, dtype="F16", texts=True, labels=2),
    "xlmr": dict(kind="xlm-roberta", h=36, a=3, i=80, l=2, act="gelu", types=1, dtype="F32", labels=3, positions=40, lengths=[1, 38, 9, 2]),
}
# The checkpoints of `heads`; the classes of transformers are kind + one of ENDS. pad: the id of the padding token, if transformers
# counts positions from it; one of the sequences then has this token inside. tied: whether the decoder is the table of words.
HEADS = {
    "bert-heads": dict(kind="Bert", h=30, a=3, i=44, l=2, act="quick_gelu", types=2, dtype="F16"),
    "distilbert-heads": dict(kind="DistilBert", h=28, a=2, i=50, l=1, act="silu", types=1, dtype="F32", tied=False),
    "roberta": dict(kind="Roberta", h=36, a=4, i=60, l=2, act="gelu", types=1, dtype="F16", pad=1),
    "mpnet": dict(kind="MPNet", h=40, a=5, i=70, l=2, act="gelu", types=1, dtype="F16", pad=1, positions=150,
                  lengths=[1, 7, 148, 33]),
    "electra": dict(kind="Electra", h=32, a=4, i=50, l=2, e=20, act="gelu_fast", types=2, dtype="F32"),
    "prelayernorm": dict(kind="RobertaPreLayerNorm", h=24, a=3, i=40, l=2, act="gelu", types=1, dtype="F16", pad=1),
}
ENDS = {"fill_mask": "ForMaskedLM", "classify": "ForSequenceClassification", "qa": "ForQuestionAnswering",
        "ner": "ForTokenClassification"}
BARE = ("bert.", "distilbert.", "roberta.", "classifier", "pre_classifier")


def random_weights(rng, model, spec):
    """Random weights that are large enough for every layer to have an effect: gain 1.5, random LayerNorms and biases."""
    state = {}
    for name, p in model.state_dict().items():
        if "position_ids" in name or "token_type_ids" in name:
            continue
        shape = tuple(p.shape)
        if "relative_attention_bias" in name:
            w = rng.normal(0, 1.5, shape)
        elif name.endswith(("LayerNorm.weight", "layer_norm.weight")):
            w = rng.uniform(0.5, 1.5, shape)
            if spec.get("outliers"):
                w[[3, 17, 40]] *= 12
        elif name.endswith(("LayerNorm.bias", "layer_norm.bias")):
            w = rng.normal(0, 0.3, shape)
            if spec.get("outliers"):
                w[[17, 40]] += [-9, 6]
        elif name.endswith(".bias"):
            w = rng.normal(0, 0.2, shape)
        elif "embeddings" in name:
            w = rng.normal(0, 2e-5 if spec.get("denormals") else 0.3, shape)
        else:
            w = rng.normal(0, 1.5 / np.sqrt(shape[1]), shape)
            if any(part in name for part in ("query", "key", "q_lin", "k_lin", "attn.q", "attn.k")):
                w *= 1.5
            if spec.get("outliers"):
                w[:, [3, 17, 40]] *= 0.3
        state[name] = torch.from_numpy(w.astype(np.float32))
    return state


def store(folder, state, spec):
    """Writes a checkpoint's files, with the names and the data type of `spec`."""
    names = {}
    for name, w in state.items():
        if not name.startswith(BARE):
            name = spec.get("prefix", "") + name
        if spec.get("gamma"):
            name = name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias", "LayerNorm.beta")
        names[name] = w
    if spec.get("buffers"):
        names["bert.embeddings.position_ids"] = torch.arange(spec.get("positions", 64)).unsqueeze(0)
        names["cls.predictions.bias"] = torch.zeros(8)
    shards = spec.get("shards", 1)
    if shards == 1:
        save_file(names, f"{folder}/model.safetensors", metadata={"format": "pt"})
        return
    where = {}
    for k in range(shards):
        file = f"model-{k + 1:05d}-of-{shards:05d}.safetensors"
        part = {n: w for j, (n, w) in enumerate(sorted(names.items())) if j * shards // len(names) == k}
        save_file(part, f"{folder}/{file}", metadata={"format": "pt"})
        where.update({n: file for n in part})
    size = sum(w.numel() * w.element_size() for w in names.values())
    write_json(f"{folder}/model.safetensors.index.json", {"metadata": {"total_size": size}, "weight_map": where})


def write_json(path, value):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        json.dump(value, f, indent=1, ensure_ascii=False)
        f.write("\n")


def pooled(h):
    """The results of sentence-transformers' pooling modes for the hidden states of one sequence."""
    n = torch.tensor(float(len(h)))
    return {"first": h[0], "mean": h.sum(0) / n, "max": h.max(0).values, "mean_sqrt": h.sum(0) / n.sqrt(), "last": h[-1]}


def inputs(model, sequences):
    """The model's arguments for a padded batch of (ids, types)."""
    longest = max(len(ids) for ids, _ in sequences)
    pad = lambda v, by=0: torch.tensor([list(x) + [by] * (longest - len(x)) for x in v])
    given = {"input_ids": pad([s[0] for s in sequences], model.config.pad_token_id),
             "attention_mask": pad([[1] * len(ids) for ids, _ in sequences])}
    if model.config.model_type not in ("distilbert", "mpnet"):
        given["token_type_ids"] = pad([s[1] for s in sequences])
    return given


def values(model, sequences, rows, int8=False):
    """The values of sequences, a list of (ids, types). rows: a function from a sequence's length to the rows that are kept."""
    with torch.no_grad():
        out = model(**inputs(model, sequences), output_hidden_states=True)
    alone = lambda i: model(**inputs(model, [sequences[i]]), output_hidden_states=True)
    simulated = {m: simulate.int8(model, alone, sequences, m, 0.5) for m in ("static", "dynamic") if int8}
    kept = {}
    for i, (ids, types) in enumerate(sequences):
        t, keep = len(ids), torch.tensor(rows(len(ids)))
        kept[f"{i}/ids"], kept[f"{i}/types"] = torch.tensor(ids, dtype=torch.int32), torch.tensor(types, dtype=torch.int32)
        kept[f"{i}/rows"] = keep.to(torch.int32)
        for j, h in enumerate(out.hidden_states):
            kept[f"{i}/layer.{j - 1}" if j else f"{i}/embedding"] = h[i, keep].clone()
        for mode, states in simulated.items():
            kept[f"{i}/int8.{mode}"] = states[i][keep].clone()
        for mode, p in pooled(out.hidden_states[-1][i, :t]).items():
            kept[f"{i}/pooled.{mode}"] = p.clone()
        if getattr(out, "pooler_output", None) is not None:
            kept[f"{i}/pooler"] = out.pooler_output[i].clone()
        if getattr(out, "logits", None) is not None:
            kept[f"{i}/logits"] = out.logits[i].clone()
    return kept


def make(name, spec, vocabulary, labels):
    """The model of transformers, before its weights are set."""
    sizes = dict(vocab_size=vocabulary, max_position_embeddings=spec.get("positions", 64), id2label=labels,
                 label2id={v: k for k, v in labels.items()}, attn_implementation="eager",
                 problem_type="regression" if name == "regression" else None)
    if spec.get("kind") == "distilbert":
        return DistilBertForSequenceClassification(DistilBertConfig(dim=spec["h"], n_heads=spec["a"], hidden_dim=spec["i"],
                                                                    n_layers=spec["l"], activation=spec["act"], **sizes))
    sizes.update(hidden_size=spec["h"], num_attention_heads=spec["a"], intermediate_size=spec["i"], num_hidden_layers=spec["l"],
                 hidden_act=spec["act"], type_vocab_size=spec["types"])
    if spec.get("kind") == "xlm-roberta":
        return XLMRobertaForSequenceClassification(XLMRobertaConfig(layer_norm_eps=1e-5, pad_token_id=1, **sizes))
    config = BertConfig(layer_norm_eps=1e-12, **sizes)
    return BertForSequenceClassification(config) if spec.get("labels") else BertModel(config, add_pooling_layer=spec.get("pooler", True))


def small():
    for seed, (name, spec) in enumerate(SMALL.items(), 1):
        rng, folder = np.random.default_rng(seed), f"{HERE}/checkpoints/{name}"
        os.makedirs(folder, exist_ok=True)
        vocab = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS if spec.get("texts") else [None] * 97
        labels = {i: f"LABEL_{i}" for i in range(spec.get("labels", 2))}
        if name == "pairs":
            labels = {0: "entailment", 1: "neutral", 2: "contradiction"}
        model = make(name, spec, len(vocab), labels).eval()
        dtype = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16}[spec["dtype"]]
        state = {n: w.to(dtype) for n, w in random_weights(rng, model, spec).items()}
        missing, unexpected = model.load_state_dict({n: w.float() for n, w in state.items()}, strict=False)
        assert not unexpected and all("position_ids" in m or "token_type_ids" in m for m in missing), (missing, unexpected)
        store(folder, state, spec)
        d = model.config.to_dict()
        keep = ("hidden_size num_attention_heads num_hidden_layers intermediate_size hidden_act type_vocab_size vocab_size "
                "max_position_embeddings layer_norm_eps model_type pad_token_id problem_type "
                "dim n_heads n_layers hidden_dim activation").split()
        d = {k: d[k] for k in keep if d.get(k) is not None}
        d["architectures"] = [type(model).__name__]
        if spec.get("labels"):
            d["id2label"], d["label2id"] = {str(k): v for k, v in labels.items()}, {v: k for k, v in labels.items()}
        write_json(f"{folder}/config.json", d)
        if spec.get("texts"):
            with open(f"{folder}/vocab.txt", "w", encoding="utf-8", newline="\n") as f:
                f.write("".join(w + "\n" for w in vocab))
            write_json(f"{folder}/tokenizer_config.json", {"do_lower_case": True, "model_max_length": 64, "tokenizer_class": "BertTokenizer"})
            tok = AutoTokenizer.from_pretrained(folder)
            enc = [tok(a, b) if b is not None else tok(a) for a, b in TEXTS]
            sequences = [(e["input_ids"], e["token_type_ids"] if spec["types"] > 1 else [0] * len(e["input_ids"])) for e in enc]
            write_json(f"{folder}/texts.json", [[a] if b is None else [a, b] for a, b in TEXTS])
        else:
            lengths = spec.get("lengths", [1, 7, 2, 33])
            first = 2 if spec.get("kind") == "xlm-roberta" else 0  # its padding token has no position
            sequences = [(rng.integers(first, len(vocab), n).tolist(), [int(spec["types"] > 1 and k >= n // 2) for k in range(n)]) for n in lengths]
        if spec.get("pool"):
            write_json(f"{folder}/modules.json", [
                {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{t}"}
                for i, (p, t) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])])
            os.makedirs(f"{folder}/1_Pooling", exist_ok=True)
            write_json(f"{folder}/1_Pooling/config.json", {"word_embedding_dimension": spec["h"],
                       **{k: m == spec["pool"] for m, k in POOLING.items()}})
            write_json(f"{folder}/sentence_bert_config.json", {"max_seq_length": 48, "do_lower_case": False})
        kept = values(model, sequences, lambda t: list(range(t)) if t < 128 else [0, 1, t // 2, t - 1], int8=True)
        save_file(kept, f"{folder}/values.safetensors")
        size = sum(os.path.getsize(os.path.join(r, f)) for r, _, fs in os.walk(folder) for f in fs)
        spread = {k.split("/")[1]: round(float(v.float().std()), 3) for k, v in kept.items() if k.startswith("1/") and v.is_floating_point()}
        print(f"{name}: {size} bytes, standard deviations {spread}")


def of_heads(spec, vocabulary, end):
    """The model of transformers for an architecture with one of its heads, before its weights are set."""
    labels = {i: f"LABEL_{i}" for i in range(2 if end == "ForQuestionAnswering" else 3)}
    sizes = dict(vocab_size=vocabulary, max_position_embeddings=spec.get("positions", 64), id2label=labels,
                 label2id={v: k for k, v in labels.items()}, attn_implementation="eager", pad_token_id=spec.get("pad", 0),
                 tie_word_embeddings=spec.get("tied", True))
    if spec["kind"] == "DistilBert":
        sizes.update(dim=spec["h"], n_heads=spec["a"], hidden_dim=spec["i"], n_layers=spec["l"], activation=spec["act"])
    else:
        sizes.update(hidden_size=spec["h"], num_attention_heads=spec["a"], intermediate_size=spec["i"], num_hidden_layers=spec["l"],
                     hidden_act=spec["act"], type_vocab_size=spec["types"], layer_norm_eps=1e-6)
        if spec.get("e"):
            sizes["embedding_size"] = spec["e"]
    return getattr(transformers, spec["kind"] + end)(getattr(transformers, spec["kind"] + "Config")(**sizes)).eval()


def decoders(model):
    """The names of parameters that are the same tensor as an earlier parameter, such as a tied decoder."""
    first = {}
    return [n for n, p in model.state_dict(keep_vars=True).items() if first.setdefault(id(p), n) != n]


def heads(chosen):
    for seed, (name, spec) in enumerate(HEADS.items(), 101):
        if chosen and name not in chosen:
            continue
        rng, folder, vocabulary = np.random.default_rng(seed), f"{HERE}/checkpoints/{name}", 97
        os.makedirs(folder, exist_ok=True)
        models = {head: of_heads(spec, vocabulary, end) for head, end in ENDS.items()}
        dtype = {"F32": torch.float32, "F16": torch.float16}[spec["dtype"]]
        state = {}
        for model in models.values():
            own = random_weights(rng, model, spec)
            for n in decoders(model):
                del own[n]
            state.update({n: w.to(dtype) for n, w in own.items() if n not in state})
        save_file(state, f"{folder}/model.safetensors", metadata={"format": "pt"})
        for model in models.values():
            model.load_state_dict({n: w.float() for n, w in state.items() if n in model.state_dict()}, strict=False)
            model.tie_weights()
        d = models["classify"].config.to_dict()
        keep = ("hidden_size num_attention_heads num_hidden_layers intermediate_size hidden_act type_vocab_size vocab_size "
                "max_position_embeddings layer_norm_eps model_type pad_token_id embedding_size relative_attention_num_buckets "
                "tie_word_embeddings dim n_heads n_layers hidden_dim activation").split()
        d = {k: d[k] for k in keep if d.get(k) is not None}
        d["architectures"] = [spec["kind"] + "Model"]
        d["id2label"] = {str(i): f"LABEL_{i}" for i in range(3)}
        write_json(f"{folder}/config.json", d)
        sequences = [(rng.integers(2, vocabulary, n).tolist(), [int(spec["types"] > 1 and k >= n // 2) for k in range(n)])
                     for n in spec.get("lengths", [1, 7, 2, 33])]
        if spec.get("pad"):
            for k in (3, 4, 20):
                sequences[-1][0][k] = spec["pad"]
        rows = lambda t: list(range(t)) if t < 40 else [0, 1, t // 2, t - 1]
        kept = values(models["fill_mask"], sequences, rows, int8=True)
        kept = {k: v for k, v in kept.items() if "logits" not in k and "pooled" not in k}
        with torch.no_grad():
            for i, s in enumerate(sequences):
                out = {head: model(**inputs(model, [s])) for head, model in models.items()}
                keep, marks = torch.tensor(rows(len(s[0]))), torch.arange(0, len(s[0]), 5)[:4]
                kept[f"{i}/classify"] = out["classify"].logits[0].clone()
                kept[f"{i}/qa"] = torch.stack([out["qa"].start_logits[0], out["qa"].end_logits[0]], 1)[keep].clone()
                kept[f"{i}/ner"] = out["ner"].logits[0, keep].clone()
                kept[f"{i}/marks"], kept[f"{i}/fill_mask"] = marks.to(torch.int32), out["fill_mask"].logits[0, marks].clone()
        save_file(kept, f"{folder}/values.safetensors")
        size = sum(os.path.getsize(f"{folder}/{f}") for f in os.listdir(folder))
        spread = {k.split("/")[1]: round(float(v.float().std()), 3) for k, v in kept.items() if k.startswith("1/") and v.is_floating_point()}
        print(f"{name}: {size} bytes, {len(state)} tensors, standard deviations {spread}")


DEMO = ["a", "", "How do I locate my card?", "The quick brown fox jumps over the lazy dog.",
        "SmoothQuant moves the difficulty of quantization from activations to weights.", "Zürich, Ærø & Łódź: 3,14 % of 42 €!",
        "two words", "In the beginning the numbers were floating, and it took much time to add them.", " ".join(["again and again"] * 40),
        " ".join(f"{n} green bottles hanging on the wall" for n in range(99, 49, -1))]


def demo(source):
    folder = f"{HERE}/minilm"
    os.makedirs(folder, exist_ok=True)
    tok = AutoTokenizer.from_pretrained(source)
    tok.backend_tokenizer.no_truncation()
    tok.backend_tokenizer.no_padding()
    limit = json.load(open(f"{source}/sentence_bert_config.json"))["max_seq_length"]
    model = BertModel.from_pretrained(source, dtype=torch.float32, attn_implementation="eager").eval()
    enc = [tok(t, truncation=True, max_length=limit) for t in DEMO]
    sequences = [(e["input_ids"], e["token_type_ids"]) for e in enc]
    kept = values(model, sequences, lambda t: list(range(t)) if t < 9 else [0, t // 2, t - 1])
    for i in range(len(DEMO)):
        v = kept.pop(f"{i}/pooled.mean")
        for other in ("first", "max", "mean_sqrt", "last"):
            del kept[f"{i}/pooled.{other}"]
        kept[f"{i}/embed"] = v / v.norm()
        del kept[f"{i}/pooler"]
    save_file(kept, f"{folder}/values.safetensors")
    write_json(f"{folder}/texts.json", DEMO)
    print("lengths", [len(s[0]) for s in sequences], os.path.getsize(f"{folder}/values.safetensors"), "bytes")


def mpnet(source):
    folder = f"{HERE}/mpnet"
    os.makedirs(folder, exist_ok=True)
    tok = AutoTokenizer.from_pretrained(source)
    tok.backend_tokenizer.no_truncation()
    tok.backend_tokenizer.no_padding()
    model = transformers.MPNetModel.from_pretrained(source, dtype=torch.float32, attn_implementation="eager",
                                                    add_pooling_layer=False).eval()
    texts = [DEMO[5], DEMO[7], DEMO[9]]
    sequences = [(e, [0] * len(e)) for e in (tok(t, truncation=True, max_length=384)["input_ids"] for t in texts)]
    kept = values(model, sequences, lambda t: [0, t - 1])
    for i in range(len(texts)):
        v = kept.pop(f"{i}/pooled.mean")
        for other in [k for k in kept if k.startswith(f"{i}/pooled")]:
            del kept[other]
        kept[f"{i}/embed"] = v / v.norm()
    save_file(kept, f"{folder}/values.safetensors")
    write_json(f"{folder}/texts.json", texts)
    print("lengths", [len(s[0]) for s in sequences], os.path.getsize(f"{folder}/values.safetensors"), "bytes")


if __name__ == "__main__":
    if sys.argv[1:] == ["small"]:
        small()
    elif sys.argv[1:2] == ["heads"]:
        heads(sys.argv[2:])
    elif len(sys.argv) == 3 and sys.argv[1] == "mpnet":
        mpnet(sys.argv[2])
    elif len(sys.argv) == 3 and sys.argv[1] == "demo":
        demo(sys.argv[2])
    else:
        sys.exit(__doc__)
