"""Compares tokenizers and Perigee on random tokenizers with every component, alone and in sequences, and on generated texts.

    make && pip install tokenizers && python spec/golden/tokenizer/differential_pipeline.py [--texts N] [--seed S] [--round N]

Each round draws a tokenizer.json (normalizers, pre-tokenizers, a WordPiece, Unigram or byte pair encoding model trained for the
round, post-processors, decoders, added tokens with random options) and 200 texts of differential.py: single texts, pairs and lists
of words, with all ways to truncate and without a limit. It compares ids, types, offsets in bytes and in characters, sequences,
words, and decoded texts. The run ends at the first difference, and prints the shortest texts that show it."""
import argparse
import base64
import json
import os
import random
import sys
import time

from tokenizers import Tokenizer

import differential
from blobs import charsmap
from ours import Ours, differences, reference_of
from reference import SHARED

SAMPLE = 300
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
REGEXES = [GPT2, r"\s+", r" {2,}", r"[\r\n]", r"\d", r"\d{1,3}", r"[^\S\n]+|\n", r"\w+|[^\w\s]+", r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
           r"(?:ab|a)(?=b)", r"a+?b|[^a-c]", r"é|[\x{300}-\x{36f}]", r"^\s|\s$", r"\Aa|e\z", r"(a|b)(c|d)?e*"]
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
STRINGS = [" ", "a", "ab", "-", "▁", "é", "``", "\n"]


def pattern(rng):
    return {"Regex": rng.choice(REGEXES)} if rng.random() < 0.5 else {"String": rng.choice(STRINGS)}


def flags(rng, *names):
    return {name: rng.random() < 0.5 for name in names}


def precompiled(rng):
    alphabet = [chr(rng.choice(rng.choice(differential.CLASSES))) for _ in range(60)] + list("abc ")
    alphabet = [c for c in alphabet if c != "\0"]
    mapping = {"".join(rng.choice(alphabet) for _ in range(rng.choice([1, 1, 2]))):
               "".join(rng.choice(alphabet) for _ in range(rng.choice([0, 1, 2]))) for _ in range(40)}
    return {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap(mapping)).decode()}


def normalizer(rng):
    kind = rng.choice(["BertNormalizer", "NFC", "NFD", "NFKC", "NFKD", "Lowercase", "StripAccents", "Strip", "Replace", "Prepend", "Nmt",
                       "ByteLevel", "Precompiled"])
    if kind == "BertNormalizer":
        return {"type": kind, "strip_accents": rng.choice([None, True, False]),
                **flags(rng, "clean_text", "handle_chinese_chars", "lowercase")}
    more = {"Strip": flags(rng, "strip_left", "strip_right"), "Replace": {"pattern": pattern(rng), "content": rng.choice(
        ["", " ", "xy", "é", "▁"])}, "Prepend": {"prepend": rng.choice(["▁", "ab", "é "])}}
    return precompiled(rng) if kind == "Precompiled" else {"type": kind, **more.get(kind, {})}


def metaspace(rng):
    return {"type": "Metaspace", "replacement": rng.choice("▁▁▁_é"), "prepend_scheme": rng.choice(["always", "first", "never"]),
            "split": rng.random() < 0.7}


def byte_level(rng):
    return {"type": "ByteLevel", **flags(rng, "add_prefix_space", "trim_offsets", "use_regex")}


def pre_tokenizer(rng):
    kind = rng.choice(["BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Punctuation", "Digits", "Split", "Metaspace", "ByteLevel",
                       "CharDelimiterSplit", "FixedLength"])
    if kind in ("Metaspace", "ByteLevel"):
        return metaspace(rng) if kind == "Metaspace" else byte_level(rng)
    more = {"Punctuation": {"behavior": rng.choice(BEHAVIORS)}, "Digits": flags(rng, "individual_digits"),
            "Split": {"pattern": pattern(rng), "behavior": rng.choice(BEHAVIORS), "invert": rng.random() < 0.3},
            "CharDelimiterSplit": {"delimiter": rng.choice(" -é▁")}, "FixedLength": {"length": rng.randint(1, 6)}}
    return {"type": kind, **more.get(kind, {})}


def decoder(rng):
    kind = rng.choice(["WordPiece", "ByteLevel", "Metaspace", "BPEDecoder", "Replace", "Fuse", "Strip", "ByteFallback"])
    if kind in ("Metaspace", "ByteLevel"):
        return metaspace(rng) if kind == "Metaspace" else byte_level(rng)
    more = {"WordPiece": {"prefix": rng.choice(["##", "a"]), "cleanup": rng.random() < 0.7}, "BPEDecoder": {"suffix": "</w>"},
            "Replace": {"pattern": pattern(rng), "content": rng.choice(["", " ", "xy"])},
            "Strip": {"content": rng.choice(" ▁a"), "start": rng.randint(0, 2), "stop": 0}}
    return {"type": kind, **more.get(kind, {})}


def sequence(rng, make, key, most):
    n = rng.choice([0, 1, 1, 2, most])
    if n == 0:
        return None
    steps = [make(rng) for _ in range(n)]
    while sum(s["type"] == "Precompiled" for s in steps) > 1:  # Perigee supports one
        steps.pop()
    return steps[0] if n == 1 else {"type": "Sequence", key: steps}


def special(id_, type_id):
    return {"SpecialToken": {"id": id_, "type_id": type_id}}


def text_of(name, type_id):
    return {"Sequence": {"id": name, "type_id": type_id}}


def template(rng):
    """A random template: special tokens may have several ids, and texts may be in any order and occur twice."""
    two = rng.random() < 0.2
    tokens = {"[CLS]": {"id": "[CLS]", "ids": [1, 3] if two else [1], "tokens": ["[CLS]", "x"] if two else ["[CLS]"]},
              "[SEP]": {"id": "[SEP]", "ids": [2], "tokens": ["[SEP]"]}}
    single = [special("[CLS]", 0), text_of("A", rng.randint(0, 2)), special("[SEP]", 0)]
    pair = single + [text_of("B", 1), special("[SEP]", rng.randint(0, 1))]
    if rng.random() < 0.2:
        rng.shuffle(pair)
    if rng.random() < 0.1:
        pair = pair + [text_of("A", 3)]
    return {"type": "TemplateProcessing", "single": single, "pair": pair, "special_tokens": tokens}


def post_processor(rng):
    cls, sep = ["[CLS]", 1], ["[SEP]", 2]
    around = rng.choice([None, template(rng), {"type": "BertProcessing", "cls": cls, "sep": sep},
                         {"type": "RobertaProcessing", "cls": cls, "sep": sep, **flags(rng, "trim_offsets", "add_prefix_space")}])
    bytes_ = byte_level(rng)
    if rng.random() < 0.3 and not (around and around.get("trim_offsets") and bytes_["trim_offsets"]):
        return {"type": "Sequence", "processors": [bytes_] + ([around] if around else [])}
    return around


SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BYTE_CHARACTERS = [chr(c) for c in list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x180))]


def words_of(t, texts):
    """The words that the normalizer and the pre-tokenizer give to the model."""
    out = []
    for text in texts:
        s = t.normalizer.normalize_str(text) if t.normalizer else text
        out += [w for w, _ in t.pre_tokenizer.pre_tokenize_str(s)] if t.pre_tokenizer else [s]
    return [w for w in out if w and "\0" not in w]


def bpe(rng, words):
    """Byte pair encoding with merges of the most frequent pairs, as training makes them. Some pieces are left out."""
    prefix, suffix = rng.choice([("", ""), ("", ""), ("", ""), ("##", ""), ("", "</w>")])
    split = [[(prefix if i else "") + c + (suffix if i + 1 == len(w) else "") for i, c in enumerate(w)] for w in words if len(w) < 40]
    symbols = sorted({s for w in split for s in w})
    vocab = dict.fromkeys(SPECIAL + [s for s in symbols if rng.random() < 0.9] + rng.choice([[], BYTE_CHARACTERS]))
    merges = []
    for _ in range(rng.randint(0, SAMPLE // 5)):
        pairs = {}
        for w in split:
            for pair in zip(w, w[1:]):
                if pair[0] in vocab and pair[1] in vocab:
                    pairs[pair] = pairs.get(pair, 0) + 1
        if not pairs:
            break
        a, b = max(sorted(pairs), key=lambda p: pairs[p] * rng.uniform(0.5, 1))
        new = a + b[len(prefix):] if b.startswith(prefix) else a + b
        vocab[new] = None
        merges.append([a, b])
        for w in split:
            i = 0
            while i + 1 < len(w):
                if w[i] == a and w[i + 1] == b:
                    w[i:i + 2] = [new]
                i += 1
    if rng.random() < 0.3:
        vocab.update(dict.fromkeys(f"<0x{byte:02X}>" for byte in range(256) if byte != 7 or rng.random() < 0.5))
    if rng.random() < 0.3:
        rng.shuffle(merges)
    if any(" " in part for merge in merges for part in merge) is False and rng.random() < 0.5:
        merges = [" ".join(m) for m in merges]
    return {"type": "BPE", "dropout": None, "unk_token": rng.choice([None, "[UNK]"]), "continuing_subword_prefix": prefix or None,
            "end_of_word_suffix": suffix or None, **flags(rng, "fuse_unk", "ignore_merges"),
            # In tokenizers the bytes of a prefix have offsets behind the text; in Perigee these end with the text.
            "byte_fallback": not prefix and not suffix and rng.random() < 0.5, "vocab": {p: i for i, p in enumerate(vocab)}, "merges": merges}


def parts_of(rng, words, count):
    out = []
    for _ in range(count if words else 0):
        w = rng.choice(words)
        at = rng.randrange(len(w))
        out.append((at > 0, w[at:at + rng.randint(1, 5)]))
    return out


def wordpiece(rng, words):
    prefix = rng.choice(["##", "##", "", "a"])
    pieces = SPECIAL + [c for c in sorted({c for w in words for c in w}) if rng.random() < 0.9]
    pieces += [prefix + c for c in pieces[4:]] + [(prefix if inside else "") + p for inside, p in parts_of(rng, words, SAMPLE // 2)]
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": rng.choice([100, 100, 5]), "vocab": {p: i for i, p in enumerate(dict.fromkeys(pieces))}}


def unigram(rng, words):
    pieces = SPECIAL + sorted({c for w in words for c in w if rng.random() < 0.9}) + [p for _, p in parts_of(rng, words, SAMPLE // 2)]
    if rng.random() < 0.3:
        pieces += [f"<0x{byte:02X}>" for byte in range(256)]
    return {"type": "Unigram", "unk_id": 0, "byte_fallback": rng.random() < 0.5,
            "vocab": [[p, -rng.randint(0, 20) / 4] for p in pieces if "\0" not in p]}


def added_tokens(rng, words):
    out = [dict(content=c, normalized=False, special=True, single_word=False, lstrip=False, rstrip=False) for c in SPECIAL]
    for _ in range(rng.choice([0, 1, 3, 6])):
        content = rng.choice(["<x>", "Yes", "É", "ab", "a b", "é", "<0x41>", "▁a", "x ", rng.choice(words or ["a"])])
        if content and "\0" not in content and content not in [a["content"] for a in out]:
            out.append(dict(content=content, **flags(rng, "normalized", "special", "single_word", "lstrip", "rstrip")))
    return [dict(a, id=i) for i, a in enumerate(out)]


def draw(rng, plain):
    """A random tokenizer.json, and the words of which its model was made."""
    file = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": sequence(rng, normalizer, "normalizers", 3), "pre_tokenizer": sequence(rng, pre_tokenizer, "pretokenizers", 3),
            "post_processor": post_processor(rng), "decoder": sequence(rng, decoder, "decoders", 3),
            "model": {"type": "BPE", "vocab": {}, "merges": []}}
    texts = [plain(rng) for _ in range(60)]
    words = words_of(Tokenizer.from_str(json.dumps(dict(file, post_processor=None))), texts)
    words = rng.sample(words, min(len(words), SAMPLE))
    file["model"] = rng.choice([bpe, bpe, wordpiece, unigram])(rng, words)
    file["added_tokens"] = added_tokens(rng, words)
    t = Tokenizer.from_str(json.dumps(file))
    normal = set()
    for a in list(file["added_tokens"]):  # as in differential.py: tokenizers has no defined answer for equal or empty tokens
        n = t.normalizer.normalize_str(a["content"]) if a["normalized"] and t.normalizer else a["content"]
        if not n or (a["normalized"], n) in normal:
            file["added_tokens"].remove(a)
        normal.add((a["normalized"], n))
    return file, words


def shorten(t, ours, a, b, options):
    texts = [a, b]
    for size in (64, 16, 4, 1):
        for i in (0, 1):
            at = 0
            while isinstance(texts[i], bytes) and at < len(texts[i]):
                less = list(texts)
                less[i] = texts[i][:at] + texts[i][at + size:]
                if differences(reference_of(t, *less, **options), ours.encode(*less, **options)):
                    texts = less
                else:
                    at += size
    return texts


def compare(t, ours, a, b, options, what):
    in_words = isinstance(a, list)
    got = ours.encode_words(a, options["limit"], options["bare"]) if in_words else ours.encode(a, b, **options)
    want = reference_of(t, a, b, **options)
    if isinstance(want, str) and "Panic" in want:
        return 0
    keys = differences(want, got)
    if not keys:
        return 1
    if not in_words:
        a, b = shorten(t, ours, a, b, options)
        want, got = reference_of(t, a, b, **options), ours.encode(a, b, **options)
    print(what)
    print("texts", a, b, options, "\ndiffer in", *differences(want, got))
    for key in want if isinstance(want, dict) and isinstance(got, dict) else ["*"]:
        print(f"  {key:10}", want[key] if key != "*" else want, f"\n  {'ours':10}", got[key] if key != "*" else got)
    sys.exit(1)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, default=200, help="texts for one tokenizer")
    args = parser.parse_args()
    if os.path.isdir(SHARED):
        differential.snippets()
    done, answered, began = 0, 0, time.time()
    while done < args.texts:
        rng = random.Random(args.seed * 1000003 + done)

        def plain(rng):
            return differential.text(rng, ["the", "##ing", "un", "a", "é"], ["Yes"]).decode(errors="replace")

        file, words = draw(rng, plain)
        text = json.dumps(file)
        t = Tokenizer.from_str(text)
        tokens = [a["content"] for a in file["added_tokens"]]
        with Ours({"tokenizer.json": text.encode()}) as ours:
            for _ in range(args.round):
                a = differential.text(rng, words or ["a"], tokens)
                b = differential.text(rng, words or ["a"], tokens) if rng.random() < 0.3 else None
                if rng.random() < 0.1:
                    a, b = [differential.text(rng, words or ["a"], tokens) for _ in range(rng.randint(1, 5))], None
                limit = None if '"type_id": 3' in text else rng.choice([None, None, 6, 7, 8, 13, 30])  # 3: a text twice
                if sum(map(len, a if isinstance(a, list) else [a, b or b""])) > 300:
                    limit = None  # tokenizers combines the parts that it cuts off in all ways, which takes gigabytes
                truncate = rng.choice([0, 0, 1, 2 if b is not None else 0])
                options = dict(limit=limit, bare=rng.random() < 0.2, truncate=0 if isinstance(a, list) else truncate)
                answered += compare(t, ours, a, b, options, f"{text}\nseed {args.seed}, text {done}: " + " ".join(
                    json.dumps(file[k]) for k in ("normalizer", "pre_tokenizer", "post_processor", "decoder")) + file["model"]["type"])
                done += 1
    print(f"{done} texts, {answered} of which tokenizers answers, all equal, {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
