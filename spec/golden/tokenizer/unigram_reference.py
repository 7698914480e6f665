"""Unigram by tokenizers and transformers, and the texts of ../shared, for unigram.py and differential_unigram.py."""
import glob
import json
import os
import shutil
import tempfile

from tokenizers import Tokenizer
from transformers import AutoTokenizer

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..", "..")
SHARED = os.path.join(TOP, "..", "shared", "data")
SPACE = dict(replacement="▁", prepend_scheme="always")
NAMES = {"XLMRobertaTokenizer": "sentencepiece.bpe.model", "CamembertTokenizer": "sentencepiece.bpe.model",
         "XLNetTokenizer": "spiece.model"}
# Models of ../shared and the tokenizer_class that goes with them; None: as the model says.
MODELS = [("xlm-roberta-base/tokenizer.json", None), ("xlm-roberta-base/sentencepiece.bpe.model", "XLMRobertaTokenizer"),
          ("xlnet/spiece.model", "XLNetTokenizer"), ("xlnet/spiece.model", None),
          ("curated-tokenizers-tests/toy.model", "CamembertTokenizer"), ("curated-tokenizers-tests/toy.model", None),
          ("sentencepiece-tests/test_model.model", None), ("sentencepiece-tests/test_ja_model.model", None)]


def reference(path, kind):
    """The tokenizer of a tokenizer.json, or of a SentencePiece model as AutoTokenizer makes it."""
    if path.endswith(".json"):
        return Tokenizer.from_file(path)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(path, os.path.join(folder, NAMES.get(kind, "tokenizer.model")))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump({"model_type": "bert"}, f)
        with open(os.path.join(folder, "tokenizer_config.json"), "w", encoding="utf-8") as f:
            json.dump({"tokenizer_class": kind or "PreTrainedTokenizerFast"}, f)
        return AutoTokenizer.from_pretrained(folder).backend_tokenizer


def byte_offsets(text):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return at


def encode(t, a, b=None, limit=None):
    """Returns ids, types, offsets in bytes, the number of dropped tokens, and the decoded text in bytes."""
    t.no_truncation()
    whole = e = t.encode(a, b)
    if limit is not None:
        t.enable_truncation(limit)
        e = t.encode(a, b)
    at, offsets = [byte_offsets(a), byte_offsets(b or "")], []
    for (begin, end), sequence in zip(e.offsets, e.sequence_ids):
        offsets.append((0, 0) if sequence is None else (at[sequence][begin], at[sequence][end]))
    return e.ids, e.type_ids, offsets, len(whole.ids) - len(e.ids), t.decode(e.ids).encode()


# ---- ../shared -----------------------------------------------------------------------------------------------------------------

# Kind, pattern, step: every so many texts of a file.
SOURCES = [("squad", "xquad/*.json", 11), ("squad", "tydiqa_goldp/*.json", 23), ("lines", "stsb_multi_mt/*.csv", 29),
           ("lines", "panx/*.tsv", 997), ("lines", "stsb/*.csv", 61)]


def texts_of(kind, path, step=1):
    with open(os.path.join(SHARED, path), encoding="utf-8", newline="\n") as f:
        data = f.read()
    if kind == "lines":
        texts = data.split("\n")
    else:
        paragraphs = [p for article in json.loads(data)["data"] for p in article["paragraphs"]]
        texts = [text for p in paragraphs for text in [p["context"]] + [qa["question"] for qa in p["qas"]]]
    return texts[::step]


def sources():
    """The files of SOURCES that exist, as (kind, path below ../shared/data, step)."""
    out = []
    for kind, pattern, step in SOURCES:
        for path in sorted(glob.glob(os.path.join(SHARED, pattern))):
            out.append((kind, os.path.relpath(path, SHARED), step))
    return out
