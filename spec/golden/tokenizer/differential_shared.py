"""Compares Perigee with tokenizers on the WordPiece and byte pair encoding vocabularies of ../shared.

    make && pip install tokenizers && python spec/golden/tokenizer/differential_shared.py [--share N] [--texts N] [--seed S]

The vocabularies are vocab.txt of BERT (uncased, cased, Chinese, multilingual), and vocab.json with merges.txt of RoBERTa, GPT-2 and a
small RobBERT. The texts are every Nth text of the sets in ../shared/data (all of them by default), generated texts, and llama.cpp's
test vectors, whose ids are checked too."""
import argparse
import csv
import glob
import json
import os
import random
import sys
import time

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors

import differential
from ours import Ours, differences, reference_of
from reference import SHARED, SPECIAL, Reference, vocabulary

FOLDER = os.path.join(SHARED, "tokenizers")
BERT = ["bert-base-uncased", "bert-base-cased", "bert-base-chinese", "bert-base-multilingual-cased"]
BPE = [("roberta-base", "roberta-base/vocab.json", "roberta-base/merges.txt"), ("gpt2", "gpt2/vocab.json", "gpt2/merges.txt"),
       ("robbert", "curated-tokenizers-tests/robbert-vocab-1000.json", "curated-tokenizers-tests/robbert-merges-1000.txt")]
VECTORS = {"bert-base-uncased": "ggml-vocab-bert-bge.gguf", "gpt2": "ggml-vocab-gpt-2.gguf"}


def read(path):
    with open(path, "rb") as f:
        return f.read()


def bert(name):
    lower = name == "bert-base-uncased"
    pieces = vocabulary(name)
    options = dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=lower, max_word_chars=100, prefix="##")
    t = Reference({p: i for i, p in enumerate(pieces)}, options, [dict(content=c, special=True, normalized=False) for c in SPECIAL]).t
    config = json.dumps({"do_lower_case": lower}).encode()
    return t, Ours({"vocab.txt": read(os.path.join(FOLDER, name, "vocab.txt")), "tokenizer_config.json": config}), pieces


def bpe(name, vocab, merges):
    vocab, merges = os.path.join(FOLDER, vocab), os.path.join(FOLDER, merges)
    t = Tokenizer(models.BPE.from_file(vocab, merges))
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    if name == "gpt2":
        t.add_special_tokens([AddedToken("<|endoftext|>", normalized=False, special=True)])
    else:
        t.add_special_tokens([AddedToken(c, normalized=False, special=True, lstrip=c == "<mask>")
                              for c in ("<s>", "<pad>", "</s>", "<unk>", "<mask>") if t.token_to_id(c) is not None])
        t.post_processor = processors.RobertaProcessing(("</s>", t.token_to_id("</s>")), ("<s>", t.token_to_id("<s>")),
                                                        trim_offsets=True, add_prefix_space=False)
    return t, Ours({"vocab.json": read(vocab), "merges.txt": read(merges)}), [p.replace("Ġ", " ") for p in t.get_vocab()]


def strings(value):
    if isinstance(value, str):
        yield value.encode()
    elif isinstance(value, (list, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from strings(item)


def texts_of(path):
    """The strings of a JSON file, the cells of a CSV file, the lines of another file."""
    data = read(path)
    if path.endswith(".json"):
        yield from strings(json.loads(data))
    elif path.endswith(".csv"):
        for row in csv.reader(data.decode(errors="replace").splitlines()):
            yield from (cell.encode() for cell in row)
    else:
        yield from data.split(b"\n")


def sources():
    paths = [p for p in glob.glob(os.path.join(SHARED, "**", "*"), recursive=True) if os.path.isfile(p)]
    skip = ("/tokenizers/", "/checkpoints/", "SOURCE", "LICENSE", "README")
    return sorted(p for p in paths if not any(s in p for s in skip) and os.path.getsize(p) > 0)


def compare(what, t, ours, a, b=None, limit=None):
    keys = differences(reference_of(t, a, b, limit), ours.encode(a, b, limit))
    if not keys:
        return
    for size in (256, 64, 16, 4, 1):
        at = 0
        while b is None and at < len(a):
            less = a[:at] + a[at + size:]
            if differences(reference_of(t, less, b, limit), ours.encode(less, b, limit)):
                a = less
            else:
                at += size
    print(what, "\ntexts", a, b, "max_tokens", limit, "\ndiffer in", *keys)
    print(reference_of(t, a, b, limit), ours.encode(a, b, limit), sep="\n")
    sys.exit(1)


def check_vectors(name, t, ours):
    path = os.path.join(FOLDER, "llama.cpp-vocab-tests", VECTORS[name])
    texts = read(path + ".inp").decode().split("\n__ggml_vocab_test__\n")
    lines = read(path + ".out").decode().split("\n")
    for text, line in zip(texts, lines):
        compare(f"{name}, a vector", t, ours, text.encode())
        want, got = [int(x) for x in line.split()], ours.encode(text.encode(), bare=True)["ids"]
        if want != got:
            # llama.cpp has no [UNK] for what BERT does not know, and its own notion of some characters.
            print(f"{name}: llama.cpp differs on {text!r}: {want}, {got}")
    return len(texts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--texts", type=int, default=20000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    args = parser.parse_args()
    differential.snippets()
    for name, make in [(n, lambda n=n: bert(n)) for n in BERT] + [(b[0], lambda b=b: bpe(*b)) for b in BPE]:
        if args.only not in name:
            continue
        began, n, rng = time.time(), 0, random.Random(args.seed)
        t, ours, pieces = make()
        vectors = check_vectors(name, t, ours) if name in VECTORS else 0
        for path in sources():
            for i, text in enumerate(texts_of(path)):
                if i % args.share == 0 and text:
                    compare(f"{name}, {path}", t, ours, text)
                    n += 1
        tokens = ["<s>", "</s>", "<mask>", "[MASK]", "[SEP]", "<|endoftext|>"]
        for i in range(args.texts):
            a = differential.text(rng, pieces, tokens)
            if i % 400 == 0:  # a word of 10,000 characters
                a = (rng.choice("aé中\u0301😀") * 10000).encode() if i % 800 else a * (10000 // max(len(a), 1))
            b = differential.text(rng, pieces, tokens) if rng.random() < 0.3 else None
            limit = rng.choice([None, None, None, 4, 5, 8, 13, 30])
            if len(a) + len(b or b"") > 2000:
                limit = None  # tokenizers combines the parts that it cuts off in all ways, which takes gigabytes
            compare(f"{name}, seed {args.seed}, text {i}", t, ours, a, b, limit)
        ours.close()
        print(f"{name}: {n} texts of ../shared, {args.texts} generated, {vectors} vectors, all equal, {time.time() - began:.0f} s",
              flush=True)


if __name__ == "__main__":
    main()
