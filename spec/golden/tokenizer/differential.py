"""Encodes generated texts with tokenizers and with Perigee's tokenizer, and compares the results.

    make && pip install tokenizers && python spec/golden/tokenizer/differential.py [--texts N] [--seed S]

Each round draws a vocabulary, options, added tokens and 500 texts: words, marks in every order, decompositions, controls,
ideographs, syllables, emoji, added tokens in all surroundings, long words, ill-formed bytes, snippets of ../shared/data; single
texts and pairs, with and without a limit. The run ends at the first difference, and prints the shortest texts that show it."""
import argparse
import glob
import os
import random
import string
import sys
import time
import unicodedata

from ours import Ours
from reference import SHARED, SPECIAL, Reference, characters, normalizer, vocabulary

ROUND = 500
ANY = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
ASSIGNED = [c for c in ANY if unicodedata.category(chr(c)) not in ("Cn", "Co")]
BY = {}
for code in ASSIGNED:
    BY.setdefault(unicodedata.category(chr(code)), []).append(code)
MARKS = BY["Mn"] + BY["Mc"] + BY["Me"]
ORDERED = [c for c in MARKS if unicodedata.combining(chr(c))]
MOVING = [c for c in ORDERED if unicodedata.category(chr(c)) != "Mn"] + [0x345, 0x334, 0x315, 0x316, 0x301]
SPLITTING = [c for c in ASSIGNED if unicodedata.decomposition(chr(c)) and "<" not in unicodedata.decomposition(chr(c))]
CASED = [c for c in ASSIGNED if chr(c).lower() != chr(c)]
SPACES = [c for c in ANY if chr(c).isspace()]
PUNCT = [c for k, v in BY.items() if k[0] == "P" for c in v]
CJK = list(range(0x4E00, 0x4F00)) + list(range(0xF900, 0xFA20)) + list(range(0x2F800, 0x2F820)) + list(range(0x2B820, 0x2B830))
HANGUL = list(range(0xAC00, 0xD7A4, 37)) + list(range(0x1100, 0x1200))
EMOJI = [0x1F600, 0x1F468, 0x200D, 0x1F33E, 0xFE0F, 0x20E3, 0x1F1E9, 0x1F1EA, 0x1F3FD, 0xE0067, 0x2764]
CLASSES = [[c] for c in b"aeiouAEIOU"] + [
    list(map(ord, string.ascii_letters)), list(map(ord, string.printable)), [32], [32], SPACES, PUNCT, MARKS, ORDERED, MOVING,
    MOVING, SPLITTING, SPLITTING, CASED, CJK, HANGUL, EMOJI, BY["Cf"], BY["Cc"], BY["Nd"], ASSIGNED,
    ANY, [0x130, 0x131, 0x3A3, 0x1E9E],
    list(range(0x600, 0x700)), list(range(0xE00, 0xE80)), list(range(0x900, 0x980)), list(range(0x400, 0x500)), [0, 0xFFFD, 0x85]]
SNIPPETS = []


def snippets():
    paths = [path for pattern in ("stsb_multi_mt/*.csv", "xquad/*.json") for path in glob.glob(os.path.join(SHARED, pattern))]
    for path in sorted(paths):
        with open(path, encoding="utf-8") as f:
            text = f.read(200000)
        SNIPPETS.extend(text[i:i + 160] for i in range(0, len(text), 160))


def word(rng, pieces):
    kind = rng.random()
    if kind < 0.35:
        return "".join(rng.choice(pieces).removeprefix("##") for _ in range(rng.randint(1, 4)))
    if kind < 0.85:
        pools = [rng.choice(CLASSES) for _ in range(rng.randint(1, 3))]
        return "".join(chr(rng.choice(rng.choice(pools))) for _ in range(rng.randint(1, 8)))
    if kind < 0.88:  # a long run of marks that wants sorting
        return "e" + "".join(chr(rng.choice(ORDERED)) for _ in range(rng.randint(1, 80)))
    if kind < 0.91:  # about the longest word that is known
        return rng.choice("aé中") * rng.randint(95, 105)
    return "".join(chr(rng.choice(rng.choice(CLASSES))) for _ in range(rng.randint(1, 20)))


def text(rng, pieces, tokens):
    if rng.random() < 0.03:  # long enough for several chunks
        return rng.choice([b"", b" ", "\u0085".encode(), "\u0301".encode()]).join(text(rng, pieces, tokens) for _ in range(20))
    if SNIPPETS and rng.random() < 0.1:
        return rng.choice(SNIPPETS).encode()
    out = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 8, 13, 40 if rng.random() < 0.2 else 3])):
        out.append(rng.choice(tokens) if rng.random() < 0.2 else word(rng, pieces))
        out.append(rng.choice(["", " ", " ", "  ", "\t", "\n", chr(rng.choice(SPACES)), chr(rng.choice(PUNCT)), "."]))
    data = "".join(out).encode()
    if rng.random() < 0.1 and data:  # ill-formed: bytes changed, put in or cut out
        data = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            at = rng.randrange(len(data) + 1)
            data[at:at + rng.randint(0, 2)] = bytes(rng.randrange(256) for _ in range(rng.randint(0, 2)))
        data = bytes(data)
    return data


def added_tokens(rng, vocab, options):
    """The special tokens, and sometimes more added tokens with random options."""
    out = [dict(content=c, normalized=False, special=True, single_word=False, lstrip=False, rstrip=False) for c in SPECIAL]
    seen, normal = set(SPECIAL), set()
    for _ in range(rng.choice([0, 0, 1, 3, 6])):
        content = rng.choice(["<x>", "Yes", "yesterday", "É", "a", "ab", "abc", "[", "[CLS", "[CLS]]", "中", " x", "x ", "a b",
                              "é", "\u0301", "##a", "İ", "Ünï", "e\u0316\u0301", word(rng, list(vocab))])
        if not content or content in seen or "\0" in content:
            continue
        seen.add(content)
        token = dict(content=content, normalized=rng.random() < 0.5, special=rng.random() < 0.5, single_word=rng.random() < 0.3,
                     lstrip=rng.random() < 0.3, rstrip=rng.random() < 0.3)
        # tokenizers panics on a text if an added token is empty after normalization (Perigee never finds this token), and takes any
        # of several tokens that are equal after normalization (Perigee takes the last).
        if token["normalized"]:
            content = normalizer(options).normalize_str(content)
            if not content or content in normal:
                continue
            normal.add(content)
        out.append(token)
    return out


def small_vocabulary(rng):
    """Special tokens and many short pieces, so that most words are known and have several pieces."""
    alphabet = [chr(rng.choice(rng.choice(CLASSES))) for _ in range(300)] + list(string.printable[:94])
    alphabet = [c for c in alphabet if c != "\0"]
    pieces = SPECIAL + alphabet + ["##" + c for c in alphabet]
    pieces += [p + "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 4))) for p in ["", "##"] for _ in range(300)]
    return list(dict.fromkeys(pieces))


def draw(rng):
    kind = rng.random()
    pieces = small_vocabulary(rng) if kind < 0.6 or not SNIPPETS else vocabulary(
        rng.choice(["bert-base-uncased", "bert-base-cased", "bert-base-chinese", "bert-base-multilingual-cased"]))
    vocab = {p: i for i, p in enumerate(pieces)}
    options = dict(clean_text=rng.random() < 0.8, handle_chinese_chars=rng.random() < 0.8, lowercase=rng.random() < 0.5,
                   strip_accents=rng.choice([None, True, False]), max_word_chars=rng.choice([100, 100, 100, 7, 0]),
                   prefix=rng.choice(["##", "##", "##", "##", "", "a"]))
    added = added_tokens(rng, vocab, options)
    reference = Reference(vocab, options, added)
    ours = Ours({"tokenizer.json": reference.t.to_str().encode()})
    return reference, ours, pieces, [a["content"] for a in added], (options, added)


def differ(reference, ours, a, b, limit):
    want = reference.encode(characters(a), None if b is None else characters(b), limit)
    e = ours.encode(a, b, limit)
    got = (e["ids"], e["types"], e["bytes"], e["dropped"])
    return None if tuple(map(list, want[:3])) == tuple(map(list, got[:3])) and want[3] == got[3] else (want, got)


def shorten(reference, ours, a, b, limit):
    """Removes parts of the texts as long as the results still differ."""
    texts = [a, b]
    for size in (64, 16, 4, 1):
        for i in (0, 1):
            at = 0
            while texts[i] and at < len(texts[i]):
                less = list(texts)
                less[i] = texts[i][:at] + texts[i][at + size:]
                if differ(reference, ours, *less, limit):
                    texts = less
                else:
                    at += size
    return texts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=100000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if os.path.isdir(SHARED):
        snippets()
    done, began = 0, time.time()
    while done < args.texts:
        rng = random.Random(args.seed * 1000003 + done)
        reference, ours, pieces, tokens, setting = draw(rng)
        for _ in range(ROUND):
            a = text(rng, pieces, tokens)
            b = text(rng, pieces, tokens) if rng.random() < 0.3 else None
            limit = rng.choice([None, None, 2 + (b is not None), 3, 4, 5, 8, 13, 30])
            if differ(reference, ours, a, b, limit):
                a, b = shorten(reference, ours, a, b, limit)
                want, got = differ(reference, ours, a, b, limit)
                print("seed", args.seed, "text", done, "\noptions", *setting, "\ntexts", a, b, "\nmax_tokens", limit)
                print("package", *map(list, want[:3]), want[3], "\nours   ", *map(list, got[:3]), got[3], sep="\n  ")
                sys.exit(1)
            done += 1
        ours.close()
    print(f"{done} texts, all equal, {time.time() - began:.0f} s")


if __name__ == "__main__":
    main()
