#!/usr/bin/env python3
"""Compares Perigee with sentence-transformers on random companion files for the weights of spec/golden/tasks/sentence and cross.

  make differential-files             or differential.py [SEED] [COUNT] from the top folder, after make; COUNT folders (100), from SEED (1)

Every folder has random keys and values in modules.json, the folders that it names, the sentence_*_config.json files, and
config_sentence_transformers.json, tokenizer_config.json and config.json. Outcomes:

  equal      both answers agree to 1e-4, or both fail
  refused    Perigee fails and says that something is not supported; sentence-transformers answers
  DIFFERENT  anything else: the folder is kept and its path printed; the script ends with status 1

Needs what make_companions.py needs. LUAJIT and PERIGEE_LIB name the interpreter and the library.
"""
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import make_models as make
import make_tasks as tasks
import numpy as np
import torch
from safetensors.torch import save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
from transformers.utils import logging

warnings.filterwarnings("ignore")
logging.set_verbosity_error()
logging.disable_progress_bar()
TEXTS = [tasks.TEXTS[0], tasks.TEXTS[1], "No", tasks.LONG]
MODES = ["cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean", "lasttoken"]
FLAGS = ["pooling_mode_cls_token", "pooling_mode_max_tokens", "pooling_mode_mean_tokens", "pooling_mode_mean_sqrt_len_tokens",
         "pooling_mode_weightedmean_tokens", "pooling_mode_lasttoken"]
ACTIVATIONS = ["torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.ReLU",
               "torch.nn.modules.activation.GELU", "torch.nn.modules.activation.Sigmoid"]
NAMES = ["bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet"]
REFUSALS = ("not supported", "expected null", "is no key", "only encoders", "expected the name of one of the prompts", "all of the prompt",
            "expected an integer", "expected false", "expected one of", "no key of this file")


class Folder:
    """A random folder. Its methods write random files."""

    def __init__(self, seed):
        self.rng, self.weights = random.Random(seed), np.random.default_rng(seed)
        self.cross = self.rng.random() < 0.25
        self.path = tempfile.mkdtemp(prefix=f"perigee-{seed}-")
        shutil.copytree(f"{tasks.HERE}/{'cross' if self.cross else 'sentence'}", self.path, dirs_exist_ok=True)
        os.remove(f"{self.path}/answers.json")
        self.prompts = {}

    def write(self, name, value):
        os.makedirs(os.path.dirname(f"{self.path}/{name}"), exist_ok=True)
        make.write_json(f"{self.path}/{name}", value)

    def some(self, choices):
        """A random choice of the keys, each with one of its values."""
        return {k: self.rng.choice(v) for k, v in choices.items() if self.rng.random() < 0.3}

    def tensor(self, *shape):
        return torch.from_numpy(self.weights.normal(0, 0.4, shape).astype(np.float32))

    def pooling(self):
        rng, config = self.rng, {self.rng.choice(["word_embedding_dimension", "embedding_dimension"]): 32}
        if rng.random() < 0.5:
            modes = rng.sample(MODES, rng.randint(1, 3))
            config["pooling_mode"] = modes[0] if len(modes) == 1 and rng.random() < 0.7 else modes
        if "pooling_mode" not in config or rng.random() < 0.3:
            config.update({k: rng.random() < 0.4 for k in FLAGS if rng.random() < 0.7})
        if rng.random() < 0.4:
            config["include_prompt"] = rng.random() < 0.5
        self.write("1_Pooling/config.json", config)
        if "pooling_mode" in config:
            return 1 if isinstance(config["pooling_mode"], str) else len(config["pooling_mode"])
        return max(1, sum(config.get(k, False) for k in FLAGS))

    def dense(self, folder, width):
        rng, out = self.rng, self.rng.choice([5, 12, 32])
        config = {"in_features": width, "out_features": out, "bias": rng.random() < 0.8, **self.some({
            "activation_function": ACTIVATIONS, "use_residual": [True, False], "module_input_name": ["sentence_embedding"],
            "module_output_name": [None, "sentence_embedding"], "unheard_of": [3]})}
        tensors = {"linear.weight": self.tensor(out, width)}
        if config["bias"]:
            tensors["linear.bias"] = self.tensor(out)
        if config.get("use_residual") and out != width:
            tensors["residual.weight"] = self.tensor(out, width)
        self.write(f"{folder}/config.json", config)
        save_file(tensors, f"{self.path}/{folder}/model.safetensors")
        return out

    def modules(self):
        rng, chain = self.rng, ["Transformer", "Pooling"]
        width = 32 * self.pooling()
        for i in range(rng.randint(0, 3)):
            chain.append(rng.choice(["Dense", "LayerNorm", "Normalize", "Dropout"]))
            folder = f"{i + 2}_{chain[-1]}"
            if chain[-1] == "Dense":
                width = self.dense(folder, width)
            elif chain[-1] == "LayerNorm":
                self.write(f"{folder}/config.json", {"dimension": width})
                save_file({"norm.weight": self.tensor(width) + 1, "norm.bias": self.tensor(width)}, f"{self.path}/{folder}/model.safetensors")
            elif chain[-1] == "Dropout":
                self.write(f"{folder}/config.json", {"dropout": 0.4})
        self.write("modules.json", [{"idx": i, "name": str(i), "path": f"{i}_{n}" if i else "", "type": f"sentence_transformers.models.{n}"}
                                    for i, n in enumerate(chain)])

    def sentence_config(self):
        for name in self.rng.sample(NAMES, self.rng.randint(0, 2)):
            self.write(f"sentence_{name}_config.json", self.some({
                "max_seq_length": [None, 4, 17, 40, 60], "do_lower_case": [True, False], "unpad_inputs": [None, False],
                "query_length": [None] * 5 + [20], "document_length": [None] * 5 + [20], "transformer_task": ["feature-extraction"],
                "tokenizer_args": [{}, {"model_max_length": 15}, {"do_lower_case": False}, {"strip_accents": False, "revision": "x"}],
                "processor_kwargs": [{"model_max_length": 33}, {"tokenize_chinese_chars": False}],
                "config_args": [{}, {"hidden_act": "relu"}, {"hidden_dropout_prob": 0.9}], "model_args": [{}, {"attn_implementation": "eager"}]}))

    def sentence_transformers(self):
        prompts = {k: self.rng.choice(["", "the first ", "How many: "]) for k in self.rng.sample(["query", "document", "day"], 2)}
        config = self.some({"truncate_dim": [None, 3, 10, 200], "similarity_fn_name": [None, "cosine", "dot"], "__version__": [{}]})
        if self.rng.random() < 0.5:
            config["prompts"] = self.prompts = prompts
            if self.rng.random() < 0.5:
                config["default_prompt_name"] = self.rng.choice([None, *prompts])
        if self.cross:
            config.update(self.some({"activation_fn": [None, *ACTIVATIONS]}))
        if self.cross:
            config["model_type"] = "CrossEncoder"
        elif self.rng.random() < 0.3:
            config["model_type"] = "SentenceTransformer"
        self.write("config_sentence_transformers.json", config)

    def others(self):
        config = make_read(f"{self.path}/config.json")
        config.update(self.some({
            "hidden_act": ["gelu", "relu", "gelu_new", "silu"], "chunk_size_feed_forward": [0, 1], "layer_norm_eps": [1e-12, 1e-5],
            "is_decoder": [False], "use_cache": [True, False], "dtype": ["float32", None], "hidden_dropout_prob": [0.5], "pad_token_id": [0, 3],
            "output_hidden_states": [True, False], "architectures": [["BertModel"], ["BertForCausalLM"]] if not self.cross else
            [config["architectures"]], "unheard_of": [1]}))
        if self.cross:
            config.update(self.some({"sentence_transformers": [{"activation_fn": a} for a in [None, *ACTIVATIONS]],
                                     "sbert_ce_default_activation_function": [None, *ACTIVATIONS]}))
        self.write("config.json", config)
        self.write("tokenizer_config.json", {"tokenizer_class": "BertTokenizer", **self.some({
            "do_lower_case": [True, False], "model_max_length": [12, 40, 64], "strip_accents": [None, True, False],
            "tokenize_chinese_chars": [True, False], "padding_side": ["left", "right"]})})

    def fill(self):
        if self.cross:
            if self.rng.random() < 0.5:
                self.write("modules.json", [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}])
                self.write("sentence_bert_config.json", {"transformer_task": "sequence-classification", **self.some({
                    "max_seq_length": [20, 60]})})
        else:
            for stale in ("modules.json", "sentence_bert_config.json"):
                os.remove(f"{self.path}/{stale}")
            if self.rng.random() < 0.85:
                self.modules()
            self.sentence_config()
        self.sentence_transformers()
        self.others()
        prompt = self.rng.choice([None, None, "the last ", *self.prompts])
        self.given = {"texts": TEXTS, "prompt": prompt, "query": "how many people?" if self.cross else None}
        self.write("texts.json", self.given)
        return self


def make_read(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def reference(folder):
    """The answer of sentence-transformers, an array of vectors or scores; the text of the exception if it fails."""
    try:
        cls, given = CrossEncoder if folder.cross else SentenceTransformer, {}
        model = cls(folder.path, device="cpu", model_kwargs={"dtype": torch.float32})
        if folder.given["prompt"] is not None:
            key = "prompt_name" if folder.given["prompt"] in model.prompts else "prompt"
            given = {key: folder.given["prompt"]}
        if folder.cross:
            return model.predict([[folder.given["query"], t] for t in TEXTS], batch_size=1, **given).reshape(len(TEXTS), -1)
        return model.encode(TEXTS, batch_size=1, **given)  # without padding
    except Exception as e:  # noqa: BLE001, whatever it refuses
        return f"{type(e).__name__}: {e}"


def brief(answer):
    """An answer for the log: the text of a failure, or the shape and the first numbers."""
    return answer if isinstance(answer, str) else f"{np.shape(answer)} {np.array(answer).ravel()[:6].round(4).tolist()} ..."


def outcome(want, got):
    failed = isinstance(want, str)
    if "error" in got:
        if failed:
            return "equal"
        return "refused" if any(r in got["error"] for r in REFUSALS) else "DIFFERENT"
    if failed:
        return "DIFFERENT"
    answer, want = np.array(got["answer"]), np.array(want)
    if answer.shape == want.shape and np.all(np.abs(answer - want) <= 1e-4 * np.maximum(1, np.abs(want))):
        return "equal"
    return "DIFFERENT"


def main():
    seed, count = (int(a) for a in (sys.argv[1:] + ["1", "100"][len(sys.argv) - 1:])[:2])
    folders = [Folder(s).fill() for s in range(seed, seed + count)]
    run = subprocess.run([os.environ.get("LUAJIT", "luajit"), "spec/golden/differential.lua"], text=True, check=True, stdout=subprocess.PIPE,
                         input="".join(f.path + "\n" for f in folders))
    counts, refused = {}, {}
    for folder, line in zip(folders, run.stdout.splitlines(), strict=True):
        want, got = reference(folder), json.loads(line)
        kind = outcome(want, got)
        counts[kind] = counts.get(kind, 0) + 1
        if kind == "refused":
            reason = re.sub(r"'/[^']*/([^/']*)'", r"\1", got["error"])[:80]
            refused[reason] = refused.get(reason, 0) + 1
        if kind == "DIFFERENT":
            print(f"{folder.path}: Perigee {brief(got.get('error', got.get('answer')))}; sentence-transformers {brief(want)}; "
                  f"without effect: {got['ignored'] or 'none'}")
        else:
            shutil.rmtree(folder.path)
    for reason, n in sorted(refused.items()):
        print(f"refused {n}: {reason}")
    print(", ".join(f"{n} {kind}" for kind, n in sorted(counts.items())))
    sys.exit("DIFFERENT" in counts)


if __name__ == "__main__":
    main()
