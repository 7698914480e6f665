"""Compares Perigee's Unigram with tokenizers: on every text of ../shared, on generated texts, and part by part.

    make && pip install tokenizers sentencepiece protobuf && python spec/golden/tokenizer/differential_unigram.py [--texts N] [--seed S]

1. generated   differential.py's texts (words of pieces, marks in every order, decompositions, controls, ideographs, syllables, emoji,
               added tokens in all surroundings, long words, ill-formed bytes), alone and in pairs, cut and whole: with XLM-R, and with
               small random vocabularies, byte fallback, ties, scores above zero and charsmaps
2. texts       XLM-R (tokenizer.json and SentencePiece model), XLNet, toy.model and sentencepiece's own test models on every text of
               XQuAD, TyDi QA, STS-B in 11 languages and PAN-X: ids, types, offsets in bytes and characters, decoded text
3. clusters    a charsmap with every code point below U+10000 as its own image shows where the grapheme clusters of tokenizers end, as
               far as they matter: every code point in 20 surroundings, and random sequences of all classes
The run ends at the first difference, and prints it."""
import argparse
import base64
import json
import os
import random
import struct
import sys
import time

from tokenizers import AddedToken, Tokenizer

import differential
from blobs import charsmap
from ours import Ours
from reference import characters
from unigram_reference import MODELS, SHARED, reference, sources, texts_of

ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


class Worker(Ours):
    """Perigee's tokenizer with a shorter request, for the values that are compared here."""

    def encode(self, a, b=None, limit=None):
        """Encodes bytes. Returns ids, types, offsets in bytes, offsets in characters, dropped tokens, decoded text."""
        self.p.stdin.write(b"%d %d %d\n" % (len(a), -1 if b is None else len(b), -1 if limit is None else limit) + a + (b or b""))
        self.p.stdin.flush()
        n, dropped, size = struct.unpack("<3i", self.read(12))
        words = struct.unpack(f"<{6 * n}i", self.read(24 * n))
        at, at_c = words[2 * n:4 * n], words[4 * n:]
        return (list(words[:n]), list(words[n:2 * n]), list(zip(at[::2], at[1::2])), list(zip(at_c[::2], at_c[1::2])), dropped,
                self.read(size))


class Package:
    """The tokenizer of tokenizers. It keeps one tokenizer for each limit, because setting a limit copies the whole tokenizer."""

    def __init__(self, make):
        self.make, self.limits = make, {}
        t = make()
        self.encode, self.decode, self.to_str = t.encode, t.decode, t.to_str

    def cut(self, limit):
        if limit not in self.limits:
            self.limits[limit] = self.make()
            self.limits[limit].enable_truncation(limit)
        return self.limits[limit]


def compare(t, worker, a, b=None, limit=None):
    """Encodes bytes by both. Returns None if the answers are equal, else both answers."""
    texts = [characters(x) for x in (a, b) if x is not None]
    strings, starts = ["".join(c for c, _ in x) for x in texts], []
    for x in texts:
        at = [0]
        for _, size in x:
            at.append(at[-1] + size)
        starts.append(at)
    whole = e = t.encode(*strings)
    if limit is not None:
        e = t.cut(limit).encode(*strings)
    offsets = [(0, 0) if s is None else o for o, s in zip(e.offsets, e.sequence_ids)]
    in_bytes = [(0, 0) if s is None else (starts[s][o[0]], starts[s][o[1]]) for o, s in zip(e.offsets, e.sequence_ids)]
    want = (e.ids, e.type_ids, in_bytes, offsets, len(whole.ids) - len(e.ids), t.decode(e.ids).encode())
    got = worker.encode(a, b, limit)
    return None if want == got else (want, got)


def expect(t, worker, what, a, b=None, limit=None):
    found = compare(t, worker, a, b, limit)
    if not found:
        return
    for size in (64, 16, 4, 1):  # shorter, while it differs
        at = 0
        while b is None and at < len(a):
            less = a[:at] + a[at + size:]
            if compare(t, worker, less, b, limit):
                a = less
            else:
                at += size
    print(what, "\n", t.to_str()[:20000], "\ntexts", a, b, "\nmax_tokens", limit, "\npackage", *compare(t, worker, a, b, limit)[0], sep="\n  ")
    print("ours   ", *compare(t, worker, a, b, limit)[1], sep="\n  ")
    sys.exit(1)


# ---- Clusters ------------------------------------------------------------------------------------------------------------------

SURROUNDINGS = ["a%s", "%sa", "%s\u0301", "%s\u20d0", "\u0600%s", "\u1100%s\u0301", "\u1161%s\u0301", "\uac00%s", "%s\u1161\u0301",
                "%s\u11a8\u0301", "%s\u200d\u00a9\u0301", "\u00a9%s\u200d\u00a9\u0301", "\u00a9\u200d%s\u0301",
                "\u0915%s\u0915\u0301", "\u0915\u094d%s\u0301", "\u0915\u094d%s\u0915\u0301", "%s\u094d\u0915\u0301",
                "\U0001F1E6%s\u0301", "%s\n\u0301", "\r%s\u0301"]
# Characters of every class.
CLASSES = "aé\u0301\u20d0\u200d\u200c\u0600\u06dd\u0903\u093f\u094d\u0915\u0937\u09cd\u0995\u1100\u1161\u11a8\uac00\uac01\r\n\u0001\u200b" \
          "©®❤\u2602😀👍🏽\U0001F1E6\U0001F1E9\u0e33\u0eb3\u1b05\u1b44\ua9c0\ufe0f中"


def own_image():
    """A tokenizer.json without pre-tokenizer, whose charsmap maps every code point to itself."""
    blob = charsmap({chr(c): chr(c) for c in ALL if 0 < c < 0x10000})
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "pre_tokenizer": None,
            "post_processor": None, "decoder": None,
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(blob).decode()},
            "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": True,
                      "vocab": [["<unk>", 0.0]] + [[f"<0x{byte:02X}>", -1.0] for byte in range(256)]}}


def check_clusters(rng, count):
    text = json.dumps(own_image())
    t, worker = Package(lambda: Tokenizer.from_str(text)), Worker({"tokenizer.json": text.encode()})
    for f in SURROUNDINGS:  # 1000 at once, a sequence that nothing joins between them
        for i in range(0, len(ALL), 1000):
            expect(t, worker, "clusters", "".join(f % chr(c) + "\n" for c in ALL[i:i + 1000]).encode())
    for _ in range(count):
        s = "".join(rng.choice(CLASSES) if rng.random() < 0.9 else chr(rng.choice(ALL)) for _ in range(rng.randint(1, 30)))
        expect(t, worker, "clusters", s.encode())
    worker.close()
    return len(SURROUNDINGS) * len(ALL) + count


# ---- Models of ../shared -------------------------------------------------------------------------------------------------------

def shared(path, kind):
    full = os.path.join(SHARED, "tokenizers", path)
    with open(full, "rb") as f:
        data = f.read()
    name = "tokenizer.json" if path.endswith(".json") else "sentencepiece.bpe.model" if kind else "spiece.model"
    config = {"tokenizer_class": kind} if kind else {}
    return Package(lambda: reference(full, kind)), Worker({name: data, "tokenizer_config.json": json.dumps(config).encode()})


def check_shared(share):
    count = 0
    for path, kind in MODELS:
        t, worker = shared(path, kind)
        for source_kind, source, _ in sources():
            for text in texts_of(source_kind, source, share):
                expect(t, worker, f"{path} {kind}", text.encode())
                count += 1
        worker.close()
    return count


# ---- Generated -----------------------------------------------------------------------------------------------------------------

def score_of(rng):
    return rng.choice([lambda: -rng.randint(0, 8) / 4, lambda: -rng.random() * 10, lambda: rng.uniform(-5, 50),
                       lambda: -rng.randint(1, 3) * 0.1])


def small(rng):
    """A random tokenizer.json with few pieces."""
    alphabet = [chr(rng.choice(rng.choice(differential.CLASSES))) for _ in range(rng.randint(20, 200))] + list("abc ▁▁▁")
    alphabet = [c for c in alphabet if c != "\0"]
    score = score_of(rng)
    vocab = [["<unk>", score()], ["<s>", 0.0], ["</s>", 0.0]]
    vocab += [["".join(rng.choice(alphabet) for _ in range(rng.randint(1, 5))), score()] for _ in range(rng.randint(1, 500))]
    if rng.random() < 0.5:
        vocab += [[f"<0x{byte:02X}>", score()] for byte in (range(256) if rng.random() < 0.7 else rng.sample(range(256), 200))]
    mapping = {}
    for _ in range(rng.randint(0, 100)):
        key = "".join(rng.choice(alphabet) for _ in range(rng.choice([1, 1, 1, 2, 3])))
        mapping[key] = "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 1, 2, 3])))
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": rng.choice(["always", "first", "never"]),
             "split": rng.random() < 0.7}
    words = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, space]}
    ends = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
            {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "</s>", "type_id": 1}}]
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "decoder": space,
            "pre_tokenizer": rng.choice([None, space, words]),
            "post_processor": {"type": "TemplateProcessing", "single": ends, "pair": ends + second, "special_tokens": {
                "<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}, "</s>": {"id": "</s>", "ids": [2], "tokens": ["</s>"]}}},
            "normalizer": {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(mapping)).decode()}
            if mapping else None,
            "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": rng.random() < 0.5, "vocab": vocab}}
    t = Tokenizer.from_str(json.dumps(file))
    t.add_tokens([AddedToken(c, normalized=False, special=True, lstrip=rng.random() < 0.3, rstrip=rng.random() < 0.3)
                  for c in ("<s>", "</s>", "<mask>")])
    text = t.to_str()
    return (Package(lambda: Tokenizer.from_str(text)), Worker({"tokenizer.json": text.encode()}), [p for p, _ in vocab],
            ["<s>", "</s>", "<mask>"])


def check_generated(seed, count):
    done = 0
    xlmr = shared(*MODELS[0]) if os.path.isdir(SHARED) else None
    pieces = None
    if xlmr:
        with open(os.path.join(SHARED, "tokenizers", MODELS[0][0]), encoding="utf-8") as f:
            pieces = [p for p, _ in json.load(f)["model"]["vocab"]]
    while done < count:
        rng = random.Random(seed * 1000003 + done)
        t, worker, known, tokens = small(rng) if not xlmr or rng.random() < 0.6 else (*xlmr, pieces, ["<s>", "</s>", "<mask>"])
        for _ in range(500):
            a = differential.text(rng, known, tokens)
            b = differential.text(rng, known, tokens) if rng.random() < 0.3 else None
            limits = [8] if known is pieces else [4, 5, 8, 13, 30]
            expect(t, worker, f"seed {seed}, text {done}", a, b, rng.choice([None, None, rng.choice(limits)]))
            done += 1
        if not xlmr or worker is not xlmr[1]:
            worker.close()
    return done


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=100000)
    parser.add_argument("--share", type=int, default=1, help="only every so many texts of ../shared")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    began = time.time()

    def report(what, count):
        print(f"{what}: {count}, all equal, {time.time() - began:.0f} s", flush=True)

    if os.path.isdir(SHARED):
        differential.snippets()
    report("generated", check_generated(args.seed, args.texts))
    if os.path.isdir(SHARED):
        report("texts of ../shared", check_shared(args.share))
    report("clusters", check_clusters(random.Random(args.seed), args.texts // 5))


if __name__ == "__main__":
    main()
