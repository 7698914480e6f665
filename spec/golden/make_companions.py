#!/usr/bin/env python3
"""Makes spec/golden/companions: the answers of sentence-transformers and peft for models with various companion files (the files
next to a checkpoint's weights).

  make_companions.py        everything; make_companions.py keys: config_keys.json alone

config_keys.json has the keys of config.json that transformers' classes have or read. cases.json is a list of { "name", "base": the folder of spec/golden/tasks that the case changes, "files": { path: its JSON, or null if the
case leaves it out }, "binary": { path: a file of this folder }, "given", "options": as Perigee calls them, "answer", "limit": the most
tokens, "from": what answered }. A case's folder is the base's files with those of the case over them.

pip install torch==2.15.0 transformers==5.24.0 sentence-transformers==6.2.0 peft==0.21.2 safetensors numpy
"""
import dataclasses
import inspect
import json
import os
import re
import shutil
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"

import make_models as make
import make_tasks as tasks
import numpy as np
import torch
import transformers
from peft import LoraConfig, PeftModel, get_peft_model
from safetensors.torch import load_file, save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers import AutoModel, AutoModelForSequenceClassification, AutoTokenizer

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__))
OUT = f"{HERE}/companions"
SHORT = [tasks.TEXTS[0], tasks.TEXTS[1], tasks.TEXTS[4]]
WITH_LONG = [tasks.TEXTS[0], tasks.LONG]
H = 32
MODES = ("cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
FLAGS = {"pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
         "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens", "pooling_mode_weightedmean_tokens": "weightedmean",
         "pooling_mode_lasttoken": "lasttoken"}
CASES = []
RNG = np.random.default_rng(77)


def random(*shape):
    return torch.from_numpy(RNG.normal(0, 0.4, shape).astype(np.float32))


def read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def folder_of(base, files, binary):
    """Writes a case's folder."""
    folder = tempfile.mkdtemp()
    shutil.copytree(f"{tasks.HERE}/{base}", folder, dirs_exist_ok=True)
    os.remove(f"{folder}/answers.json")
    for path, value in files.items():
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        if value is None:
            os.remove(f"{folder}/{path}")
        else:
            make.write_json(f"{folder}/{path}", value)
    for path, stored in binary.items():
        os.makedirs(os.path.dirname(f"{folder}/{path}"), exist_ok=True)
        shutil.copy(f"{OUT}/{stored}", f"{folder}/{path}")
    return folder


def add(name, base, files, binary, given, options, answer, limit, origin):
    CASES.append(tasks.plain({"name": name, "base": base, "files": files, "binary": binary, "given": given, "options": options,
                              "answer": answer, "limit": limit, "from": origin}))


def encode(name, files, texts=SHORT, binary=None, **options):
    """Adds a case with the answer of SentenceTransformer.encode."""
    folder = folder_of("sentence", files, binary or {})
    model = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": torch.float32})
    given = {}
    if "prompt" in options:
        given = {"prompt_name": options["prompt"]} if options["prompt"] in model.prompts else {"prompt": options["prompt"]}
    add(name, "sentence", files, binary or {}, texts, options, model.encode(texts, **given), model.max_seq_length,
        "SentenceTransformer.encode")
    shutil.rmtree(folder)


def modules(*classes):
    """The modules.json of a Transformer followed by modules of these classes."""
    names = ["Transformer", *classes]
    return [{"idx": i, "name": str(i), "path": f"{i}_{n}" if i else "", "type": f"sentence_transformers.models.{n}"} for i, n in
            enumerate(names)]


def pooling(**keys):
    return {"1_Pooling/config.json": {"word_embedding_dimension": H, **keys}}


def pooling_cases():
    for mode in MODES:
        encode(f"pooling_mode {mode}", pooling(pooling_mode=mode))
        encode(f"pooling_mode {mode}, without the prompt", pooling(pooling_mode=mode, include_prompt=False), prompt="query")
    encode("pooling_mode list", pooling(pooling_mode=["lasttoken", "weightedmean", "cls"]))
    encode("pooling_mode list of one", pooling(pooling_mode=["max"]))
    encode("pooling_mode beside older keys", pooling(pooling_mode="max", pooling_mode_cls_token=True))
    encode("no pooling mode", {"1_Pooling/config.json": {"embedding_dimension": H}})
    for on in (["cls"], ["mean", "cls", "max"], ["lasttoken", "weightedmean", "mean_sqrt_len_tokens"], []):
        encode(f"older keys: {', '.join(on)}", pooling(**{k: m in on for k, m in FLAGS.items()}))
    encode("older keys: one alone", pooling(pooling_mode_max_tokens=True))


def store(name, tensors):
    save_file(tensors, f"{OUT}/{name}.safetensors")
    return f"{name}.safetensors"


def dense(width, out, bias=True, residual=False, name=None):
    """The stored weights of a Dense."""
    tensors = {"linear.weight": random(out, width), **({"linear.bias": random(out)} if bias else {})}
    if residual and width != out:
        tensors["residual.weight"] = random(out, width)
    return store(name or f"dense-{width}-{out}{'' if bias else '-no-bias'}{'-residual' if residual else ''}", tensors)


def dense_config(width, out, activation="torch.nn.modules.activation.Tanh", **more):
    return {"in_features": width, "out_features": out, "bias": True, **({"activation_function": activation} if activation else {}),
            **more}


def module_cases():
    cls = pooling(pooling_mode="cls")
    plain, wide, square = dense(H, 12), dense(2 * H, 20), dense(H, H)
    encode("LaBSE: cls, Dense, Normalize", {"modules.json": modules("Pooling", "Dense", "Normalize"), **cls,
           "2_Dense/config.json": dense_config(H, 12)}, binary={"2_Dense/model.safetensors": plain})
    encode("distiluse: mean, Dense", {"modules.json": modules("Pooling", "Dense"), **pooling(pooling_mode="mean"),
           "2_Dense/config.json": dense_config(H, 12, None)}, binary={"2_Dense/model.safetensors": plain})
    for activation in ("linear.Identity", "activation.ReLU", "activation.GELU", "activation.SiLU"):
        encode(f"Dense with {activation}", {"modules.json": modules("Pooling", "Dense"), **cls,
               "2_Dense/config.json": dense_config(H, 12, f"torch.nn.modules.{activation}")}, binary={"2_Dense/model.safetensors": plain})
    encode("Dense without bias", {"modules.json": modules("Pooling", "Dense"), **cls, "2_Dense/config.json": dense_config(
           H, 12, bias=False)}, binary={"2_Dense/model.safetensors": dense(H, 12, bias=False)})
    encode("Dense of two modes, LayerNorm, Dropout, Normalize", {
        "modules.json": modules("Pooling", "Dense", "LayerNorm", "Dropout", "Normalize"), **pooling(pooling_mode=["mean", "max"]),
        "2_Dense/config.json": dense_config(2 * H, 20), "3_LayerNorm/config.json": {"dimension": 20}, "4_Dropout/config.json":
        {"dropout": 0.3}}, binary={"2_Dense/model.safetensors": wide, "3_LayerNorm/model.safetensors": store(
            "layer-norm", {"norm.weight": random(20) + 1, "norm.bias": random(20)})})
    encode("Normalize before Dense", {"modules.json": modules("Pooling", "Normalize", "Dense"), **cls, "3_Dense/config.json":
           dense_config(H, 12)}, binary={"3_Dense/model.safetensors": plain})
    encode("Dense with a residual", {"modules.json": modules("Pooling", "Dense"), **cls, "2_Dense/config.json": dense_config(
           H, H, use_residual=True)}, binary={"2_Dense/model.safetensors": square})
    encode("Dense with a projected residual", {"modules.json": modules("Pooling", "Dense"), **cls, "2_Dense/config.json": dense_config(
           H, 12, use_residual=True)}, binary={"2_Dense/model.safetensors": dense(H, 12, residual=True)})
    encode("Dense, without the prompt", {"modules.json": modules("Pooling", "Dense", "Normalize"), **pooling(
        pooling_mode="weightedmean", include_prompt=False), "2_Dense/config.json": dense_config(H, 12)},
        binary={"2_Dense/model.safetensors": plain}, prompt="query")
    for n in (5, H, 100):
        encode(f"truncate_dim {n}", {"config_sentence_transformers.json": {"truncate_dim": n}})
    encode("truncate_dim after Dense", {"config_sentence_transformers.json": {"truncate_dim": 7}, "modules.json": modules(
        "Pooling", "Dense"), **cls, "2_Dense/config.json": dense_config(H, 12)}, binary={"2_Dense/model.safetensors": plain})


def limit_cases():
    own = "sentence_bert_config.json"
    length = {"tokenizer_config.json": {"do_lower_case": True, "model_max_length": 40, "tokenizer_class": "BertTokenizer"}}
    for name, files in (
            ("max_seq_length goes before model_max_length", {own: {"max_seq_length": 60}, **length}),
            ("model_max_length alone", {own: {"do_lower_case": False}, **length}),
            ("the positions alone", {own: None, "tokenizer_config.json": {"do_lower_case": True, "tokenizer_class": "BertTokenizer"}}),
            ("tokenizer_args go before max_seq_length", {own: {"max_seq_length": 60, "tokenizer_args": {"model_max_length": 23}}, **length}),
            ("processor_kwargs", {own: {"processor_kwargs": {"model_max_length": 22}}, **length}),
            ("another name", {own: None, "sentence_xlm-roberta_config.json": {"max_seq_length": 21}, **length}),
            ("the first name", {own: {"max_seq_length": 20}, "sentence_roberta_config.json": {"max_seq_length": 21}, **length}),
            ("an empty file", {own: {}, "sentence_roberta_config.json": {"max_seq_length": 19}, **length}),
            ("without modules.json", {"modules.json": None, own: {"max_seq_length": 10}, **length})):
        encode(f"limit: {name}", files, WITH_LONG)
    encode("do_lower_case of the sentence config", {own: {"do_lower_case": True}, "tokenizer_config.json": {
        "do_lower_case": False, "tokenizer_class": "BertTokenizer"}})
    encode("do_lower_case of tokenizer_args", {own: {"tokenizer_args": {"do_lower_case": False}}})
    encode("config_args", {own: {"config_args": {"hidden_act": "relu"}}})
    for name in ("query", "document"):  # which every SentenceTransformer has
        encode(f"the prompt {name} of no file", {"config_sentence_transformers.json": {}}, prompt=name)
        encode(f"the prompt {name} without modules.json", {"modules.json": None}, prompt=name)
    encode("a prompt that is null", {"config_sentence_transformers.json": {"prompts": {"query": None}, "default_prompt_name": "query"}})
    encode("made to write text", {"modules.json": None, "config.json": {**read(f"{tasks.HERE}/sentence/config.json"),
                                  "architectures": ["BertForCausalLM"]}})


def rank_cases():
    config = read(f"{tasks.HERE}/cross/config.json")
    own = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]
    task = {"sentence_bert_config.json": {"transformer_task": "sequence-classification", "module_output_name": "scores",
            "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}}}
    cases = [(f"activation {a}", {"config.json": {**config, "sentence_transformers": {"activation_fn": f"torch.nn.modules.{a}"}}}, {})
             for a in ("linear.Identity", "activation.Sigmoid", "activation.Tanh", "activation.ReLU", "activation.Softplus")]
    old = "sbert_ce_default_activation_function"
    for name, inside in (("newer place first", "torch.nn.modules.activation.Tanh"), ("newer place null", None)):
        cases.append((name, {"config.json": {**config, old: "torch.nn.modules.linear.Identity", "sentence_transformers": {
            "activation_fn": inside}}}, {}))
    saved = {"modules.json": own, **task}
    for name, own_file in (("activation of the CrossEncoder's file", {"activation_fn": "torch.nn.modules.linear.Identity"}),
                           ("no activation there", {"activation_fn": None}),
                           ("a default prompt", {"prompts": {"query": "how many people: "}, "default_prompt_name": "query"})):
        cases.append((name, {**saved, "config_sentence_transformers.json": {"model_type": "CrossEncoder", **own_file}}, {}))
    prompts = {**saved, "config_sentence_transformers.json": {"model_type": "CrossEncoder", "prompts": {
        "a": "the first word ", "b": "the last "}, "default_prompt_name": "a"}}
    cases += [("a named prompt", prompts, {"prompt": "b"}), ("no prompt", prompts, {"prompt": ""}),
              ("prompts without modules.json", {"config_sentence_transformers.json": prompts["config_sentence_transformers.json"]}, {})]
    for name, files, options in cases:
        folder = folder_of("cross", files, {})
        ranker = CrossEncoder(folder, device="cpu", model_kwargs={"dtype": torch.float32})
        given = {"prompt": options["prompt"]} if options.get("prompt") == "" else {"prompt_name": options.get("prompt")}
        out = ranker.rank("how many people?", SHORT, **given)
        add(name, "cross", files, {}, {"query": "how many people?", "documents": SHORT}, {"prompt": False} if options.get("prompt") == ""
            else options, [{"index": r["corpus_id"] + 1, "score": r["score"]} for r in out], ranker.max_seq_length, "CrossEncoder.rank")
        shutil.rmtree(folder)


def zeroshot_cases():
    config = read(f"{tasks.HERE}/nli/config.json")
    for name, ids in (("label2id of id2label", {"entailment": 0, "neutral": 1, "contradiction": 2}),
                      ("label2id of its own", {"ENTAILS": 2, "neutral": 1, "contradiction": 0})):
        files = {"config.json": {**config, "label2id": ids}}
        folder = folder_of("nli", files, {})
        answers = transformers.pipeline("zero-shot-classification", model=folder, device="cpu", dtype=torch.float32)
        labels = ["water", "people", "the long day"]
        add(name, "nli", files, {}, SHORT, {"labels": labels}, [{k: out[k] for k in ("labels", "scores")} for out in answers(SHORT, labels)],
            None, "zero-shot-classification")
        shutil.rmtree(folder)


def adapt(name, base, cls, task=None, **given):
    """Adds a case of a LoRA adapter with random weights. Its answer is the model's logits, or the mean of its hidden states."""
    torch.manual_seed(5)
    base_folder, folder = f"{tasks.HERE}/{base}", tempfile.mkdtemp()
    given = {"target_modules": ["query", "value"], "r": 3, "lora_alpha": 5, **given}
    model = get_peft_model(cls.from_pretrained(base_folder, dtype=torch.float32), LoraConfig(task_type=task, **given))
    with torch.no_grad():
        for key, p in model.named_parameters():
            if "lora_" in key and "magnitude" not in key or p.requires_grad and "magnitude" not in key:
                p.copy_(random(*p.shape))
            elif "magnitude" in key:
                p.mul_(torch.exp(random(*p.shape) / 2))
    model.save_pretrained(folder)
    stored = f"adapter-{name.replace(' ', '-')}"
    save_file(load_file(f"{folder}/adapter_model.safetensors"), f"{OUT}/{stored}.safetensors")
    config = read(f"{folder}/adapter_config.json")
    merged = PeftModel.from_pretrained(cls.from_pretrained(base_folder, dtype=torch.float32), folder).merge_and_unload().eval()
    tok, answer = AutoTokenizer.from_pretrained(base_folder), []
    for text in SHORT:
        with torch.no_grad():
            out = merged(**tok(text, return_tensors="pt"))
        answer.append(out.logits[0] if task else out.last_hidden_state[0].mean(0))
    files = {"adapter_config.json": {**config, "base_model_name_or_path": "somebody/some-model"}}
    if not task:
        files["modules.json"] = None
    add(f"adapter: {name}", base, files, {"adapter_model.safetensors": f"{stored}.safetensors"}, SHORT, {},
        torch.stack(answer), None, "logits" if task else "mean of hidden states")
    shutil.rmtree(folder)


def adapter_cases():
    adapt("plain", "sentence", AutoModel)
    adapt("all linears with patterns", "sentence", AutoModel, target_modules="all-linear", r=2, use_rslora=True,
          rank_pattern={"layer.1.attention.self.query": 4}, alpha_pattern={"intermediate.dense": 7, "^encoder.layer.0.output.dense": 1})
    adapt("dora", "sentence", AutoModel, use_dora=True, target_modules=["query", "intermediate.dense"])
    adapt("tables", "sentence", AutoModel, target_modules=["position_embeddings", "key"])
    adapt("biases", "sentence", AutoModel, bias="all", lora_bias=True)
    adapt("lora_only biases", "sentence", AutoModel, bias="lora_only")
    adapt("classifier", "nli", AutoModelForSequenceClassification, "SEQ_CLS")
    adapt("whole modules", "nli", AutoModelForSequenceClassification, "SEQ_CLS", modules_to_save=["classifier", "pooler"])


def config_keys():
    """Writes config_keys.json: the fields of the configuration classes, and the keys that their models read."""
    keys = set()
    for name in ("Bert", "DistilBert", "Roberta", "XLMRoberta", "Camembert", "MPNet", "Electra"):
        config = getattr(transformers, f"{name}Config")
        keys |= {f.name for f in dataclasses.fields(config)} | set(config.attribute_map)
        source = inspect.getsource(sys.modules[getattr(transformers, f"{name}Model").__module__])
        keys |= set(re.findall(r"[^_]config\.([a-z][a-z_0-9]+)", source))
    make.write_json(f"{OUT}/config_keys.json", sorted(keys))


if __name__ == "__main__":
    if sys.argv[1:] == ["keys"]:
        config_keys()
        sys.exit()
    shutil.rmtree(OUT, ignore_errors=True)
    os.makedirs(OUT)
    config_keys()
    for part in (pooling_cases, module_cases, limit_cases, rank_cases, zeroshot_cases, adapter_cases):
        part()
    make.write_json(f"{OUT}/cases.json", CASES)
    print(f"{len(CASES)} cases, {sum(os.path.getsize(f'{OUT}/{f}') for f in os.listdir(OUT))} bytes")
