"""Makes the golden ids of the tokenizer: texts.json, vocab.txt and golden.json in this folder.

    pip install tokenizers && python spec/golden/tokenizer/golden.py

It needs ../shared/data next to the repository, for the shared vocabularies and texts, of which it stores only digests. A digest is
FNV-1a over 32-bit words (spec/support/digest.lua): for each encoding the number of tokens, the number of dropped tokens, ids,
types, offsets in bytes.

golden.json
  own         for each text of texts.json, with vocab.txt: ids under the first combination; digest of all four combinations
  shared      for each shared vocabulary: the digest of all four combinations for each text of texts.json and of ../shared
  sources     the texts of ../shared that are used: shared_texts() here and in tokenizer_spec.lua
  codepoints  for each combination and every code point c except surrogates, with a vocabulary of all code points: the encoding of
              a c @@ c b, where @@ is an added token (single_word, lstrip, rstrip); one digest for 4096 code points"""
import collections
import json
import os

import tokenizers

from reference import HERE, SHARED, SPECIAL, Reference, characters, normalizer, vocabulary
from texts import texts

VOCABULARIES = ["bert-base-uncased", "bert-base-cased", "bert-base-chinese", "bert-base-multilingual-cased"]
LIMITS = [None, 16, 40]
SOURCES = [["xquad", f"xquad/xquad.{lang}.json", 11, 12] for lang in "ar de el en es hi ro ru th tr vi zh".split()] + \
          [["xquad", f"tydiqa_goldp/tydiqa.goldp.{lang}.dev.json", 7, 40] for lang in ("fi", "ko")] + \
          [["lines", f"stsb_multi_mt/stsb-{lang}-test.csv", 34] for lang in "de es fr it ja nl pl pt ru zh".split()] + \
          [["lines", "banking77/test.csv", 34]]
MASK, PRIME, BASIS = (1 << 64) - 1, 0x100000001B3, 0xCBF29CE484222325


def options(lowercase, strip_accents, clean=True):
    return dict(clean_text=clean, handle_chinese_chars=clean, strip_accents=strip_accents, lowercase=lowercase,
                max_word_chars=100, prefix="##")


COMBINATIONS = {"lower, strip": options(True, True), "lower": options(True, False), "strip": options(False, True),
                "neither": options(False, False)}


def digest(encodings):
    h = BASIS
    for ids, types, offsets, dropped in encodings:
        for w in (len(ids), dropped, *ids, *types, *(x for o in offsets for x in o)):
            h = ((h ^ w) * PRIME) & MASK
    return f"{h:016x}"[:8]


def tokenizers_of(pieces):
    vocab = {p: i for i, p in enumerate(pieces)}
    added = [dict(content=c, special=True, normalized=False) for c in SPECIAL if c in vocab]
    return [Reference(vocab, o, added) for o in COMBINATIONS.values()]


def encode(t, case):
    a, b, limit = case
    return t.encode(characters(a), None if b is None else characters(b), limit)


def digests(pieces, cases):
    four = tokenizers_of(pieces)
    return " ".join(digest(encode(t, case) for t in four) for case in cases)


def small_vocabulary(cases):
    """Special tokens, and the frequent characters, beginnings and ends of words in the texts. Rare characters stay unknown."""
    starts, insides = collections.Counter(), collections.Counter()
    split = tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    for o in COMBINATIONS.values():
        normal = normalizer(o)
        for a, b, _ in cases:
            for word, _ in split(normal.normalize_str(a + " " + (b or ""))):
                for n in range(1, min(len(word), 9) + 1):
                    starts[word[:n]] += 1
                    if n < len(word):
                        insides["##" + word[-n:]] += 1
                for c in word[1:]:
                    insides["##" + c] += 1
    pieces = list(SPECIAL)
    for counter, most in ((starts, 1600), (insides, 1600)):
        singles = [p for p, n in counter.items() if len(p.removeprefix("##")) == 1 and n > 3]
        frequent = [p for p, n in sorted(counter.items(), key=lambda x: (-x[1], x[0])) if "\0" not in p][:most]
        pieces += sorted(set(singles + frequent))
    return list(dict.fromkeys(p for p in pieces if "\0" not in p and not p.isspace()))


def shared_texts():
    """Every n-th question and context of a set in SQuAD's format; every n-th line of another file, paired with the next line."""
    cases = []
    for kind, path, step, *more in SOURCES:
        with open(os.path.join(SHARED, path), "rb") as f:
            data = f.read()
        if kind == "xquad":
            paragraphs = [p for article in json.loads(data)["data"] for p in article["paragraphs"]]
            questions = [q["question"] for p in paragraphs for q in p["qas"]]
            chosen = questions[::step] + [p["context"] for p in paragraphs[::more[0]]]
            cases += [(t.encode(), None, None) for t in chosen]
        else:
            lines = data.split(b"\n")
            for i in range(0, len(lines) - 1, step):
                cases.append((lines[i], lines[i + 1], LIMITS[len(cases) % len(LIMITS)]))
    return cases


def codepoints():
    vocab = dict.fromkeys(SPECIAL)
    vocab.update(dict.fromkeys(p + chr(c) for p in ("", "##") for c in range(1, 0x110000) if not 0xD800 <= c < 0xE000))
    for p in vocab:  # ids as in the spec: those of ## after all others, special tokens last
        vocab[p] = 0x220000 + SPECIAL.index(p) if p in SPECIAL else ord(p[-1]) + (0x110000 if len(p) == 3 else 0)
    added = [dict(content="@@", special=True, normalized=False, single_word=True, lstrip=True, rstrip=True)]
    out = {}
    for name, o in dict(COMBINATIONS, raw=options(True, True, False)).items():
        t = Reference(vocab, o, added)
        blocks = []
        for block in range(0, 0x110000, 4096):
            codes = [c for c in range(block, block + 4096) if not 0xD800 <= c < 0xE000]
            blocks.append(digest(t.encode(characters(f"a{chr(c)}@@{chr(c)}b".encode())) for c in codes))
        out[name] = " ".join(blocks)
    return out


def main():
    cases = texts()
    with open(os.path.join(HERE, "texts.json"), "w", encoding="utf-8") as f:
        f.write("[\n" + ",\n".join(json.dumps(c, ensure_ascii=False) for c in cases) + "\n]\n")
    pieces = small_vocabulary(cases)
    with open(os.path.join(HERE, "vocab.txt"), "w", encoding="utf-8") as f:
        f.write("".join(p + "\n" for p in pieces))
    cases = [(a.encode(), None if b is None else b.encode(), limit) for a, b, limit in cases]
    first = tokenizers_of(pieces)[0]
    golden = {
        "package": tokenizers.__version__,
        "own": {"ids": [" ".join(map(str, encode(first, c)[0])) for c in cases], "digests": digests(pieces, cases)},
        "sources": SOURCES, "limits": [n or 0 for n in LIMITS],
        "shared": {},
    }
    more = shared_texts()
    for name in VOCABULARIES:
        golden["shared"][name] = {"own": digests(vocabulary(name), cases), "shared": digests(vocabulary(name), more)}
        print(name)
    print(len(cases), "texts of our own,", len(more), "shared,", len(pieces), "pieces")
    golden["codepoints"] = codepoints()
    with open(os.path.join(HERE, "golden.json"), "w", encoding="utf-8") as f:
        json.dump(golden, f, indent=0, ensure_ascii=False)
        f.write("\n")


if __name__ == "__main__":
    main()
