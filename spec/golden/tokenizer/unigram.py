"""Makes the golden set of Unigram in this folder: unigram.json, unigram.model, unigram_golden.json.

    pip install tokenizers sentencepiece protobuf && python spec/golden/tokenizer/unigram.py [--train]

--train makes the first two files anew; two trainings give different files.

unigram.json         a tokenizer.json such as XLM-R has: 1,200 pieces trained on recipes/data and texts.json, all 256 byte pieces, a
                     charsmap of our own with the kinds of rules that nmt_nfkc has
unigram.model        the same pieces as a SentencePiece model, with the ids that fairseq shifts
unigram_golden.json  for each of FORMS, one digest for each of texts.json and of the texts below, of ids, types and offsets in bytes
                     of the text, its pair, its max_tokens, and of the bytes of the decoded ids; and the ids of some.
                     Where ../shared is: for each of its Unigram models a digest for every file that SOURCES names"""
import base64
import json
import os
import string
import sys
import unicodedata

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from blobs import charsmap, model
from unigram_reference import HERE, MODELS, SHARED, SPACE, TOP, encode, reference, sources, texts_of

MASK, PRIME, BASIS = (1 << 64) - 1, 0x100000001B3, 0xCBF29CE484222325
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
# Variants of a tokenizer.json like XLM-R's: functions that change the decoded file.
FORMS = {
    "xlmr": lambda file: None,
    "bytes": lambda file: file["model"].update(byte_fallback=True),
    "whole": lambda file: file.update(pre_tokenizer=dict(file["decoder"], split=False)),
    "first": lambda file: file.update(pre_tokenizer=dict(file["decoder"], prepend_scheme="first")),
    "never": lambda file: file.update(pre_tokenizer=dict(file["decoder"], prepend_scheme="never"),
                                      decoder=dict(file["decoder"], prepend_scheme="never")),
}
MORE = ["", " ", "<mask>", "a <mask> b<mask>c", "<s></s><unk>x<pad>", "\u0001\u0001ab\u0301c", "\u0301a", "a\u0301\u0302 e\u0301x",
        "\u200bzero width", "ﾊﾞｶﾞ ﾊﾝｶｸ", "①②⑳ ㎏ ﬁne oﬃce", "x\r\ny\n\nz\tw", "日本語テキスト", "snow ☃☃☃ man", "👨‍👩‍👧‍👦 🇩🇪🇫🇷 ©\u200d©\u0301 ❤️",
        "\u0915\u094d\u0937\u093f \u0915\u094d\u200d\u0937", "각 각 힣\u11a8", "\u0600a \u0600\u0301", "<0x41><0x0A>", "▁a▁ ▁▁b",
        "́\u0001", "\ufeffbom", "A" * 300, "ab" * 400, "é" * 200, "\u0301" * 300, "no\u00a0break\u3000wide\u2028line",
        "the the the the", "tHe QuIcK", "0123456789" * 20, "\x7f\x80\x9f", "\U0001f600" * 50, "ſ ŉ Ǆ ½ ™ ℃"]


def digest(words):
    h = BASIS
    for w in words:
        h = ((h ^ w) * PRIME) & MASK
    return f"{h:016x}"[:8]


def small_charsmap():
    """A mapping with some of each kind: compatibility forms, composition, dropped controls, spaces that become ' '."""
    mapping = {}
    ranges = [range(0xA0, 0x250), range(0x2000, 0x2100), range(0x2460, 0x2474), range(0x3300, 0x3320), range(0x3380, 0x33A0),
              range(0xFB00, 0xFB07), range(0xFF01, 0xFFA0), range(0x1100, 0x1113)]
    for c in (chr(c) for r in ranges for c in r):
        normal = unicodedata.normalize("NFKC", c)
        if normal != c:
            mapping[c] = normal
    for base in string.ascii_letters:
        for mark in "\u0300\u0301\u0302\u0303\u0308":
            normal = unicodedata.normalize("NFC", base + mark)
            if len(normal) == 1:
                mapping[base + mark] = normal
    for c in range(0xFF76, 0xFF85):  # half-width katakana with their voiced marks
        mapping[chr(c) + "\uff9e"] = unicodedata.normalize("NFKC", chr(c) + "\uff9e")
    mapping.update(dict.fromkeys(map(chr, [*range(1, 9), *range(14, 32), 0x7F, 0x200B, 0x200E, 0xFEFF]), ""))
    mapping.update(dict.fromkeys("\t\n\r\u2028\u00a0\u3000", " "))
    return charsmap(mapping)


def corpus(texts):
    for name in ("calibration.txt", "pairs.tsv"):
        with open(os.path.join(TOP, "recipes", "data", name), encoding="utf-8") as f:
            yield from f
    for a, b, _ in texts:
        yield a
        yield b or ""


def build(texts):
    blob = small_charsmap()
    t = Tokenizer(models.Unigram())
    t.normalizer = normalizers.Precompiled(blob)
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**SPACE)])
    trainer = trainers.UnigramTrainer(vocab_size=1200, show_progress=False, unk_token="<unk>", special_tokens=SPECIAL)
    t.train_from_iterator(corpus(texts), trainer)
    vocab = [(p, s) for p, s in json.loads(t.to_str())["model"]["vocab"] if p not in SPECIAL]
    pieces = [(p, round(s * 1024) / 1024) for p, s in vocab if "<0x" not in p]  # the same in float and double
    pieces += [(f"<0x{byte:02X}>", 0.0) for byte in range(256)]
    t.model = models.Unigram([(p, 0.0) for p in SPECIAL] + pieces + [("<mask>", 0.0)], 3)
    t.decoder = decoders.Metaspace(**SPACE)
    t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                                     special_tokens=[("<s>", 0), ("</s>", 2)])
    t.add_special_tokens(SPECIAL + [AddedToken("<mask>", lstrip=True)])
    with open(os.path.join(HERE, "unigram.json"), "w", encoding="utf-8") as f:
        f.write(t.to_str())
    proto = [("<unk>", 0.0, 2), ("<s>", 0.0, 3), ("</s>", 0.0, 3)] + [(p, s, 1) for p, s in pieces]
    with open(os.path.join(HERE, "unigram.model"), "wb") as f:
        f.write(model(proto, [(3, 1), (4, len(proto)), (35, 0), (40, 0)], [(1, "own"), (2, blob), (3, 1), (4, 1), (5, 1)]))
    assert json.loads(t.to_str())["normalizer"]["precompiled_charsmap"] == base64.b64encode(blob).decode()


def words_of(t, a, b=None, limit=None):
    """The numbers that go into a digest, and the ids."""
    ids, types, offsets, dropped, text = encode(t, a, b, limit)
    return [len(ids), dropped, *ids, *types, *(x for o in offsets for x in o), *text], ids


def shared_digests():
    """For each model, one digest for each file of SOURCES."""
    out = {}
    for path, kind in MODELS:
        t = reference(os.path.join(SHARED, "tokenizers", path), kind)
        out[f"{path} {kind or 'plain'}"] = " ".join(
            digest(w for text in texts_of(*source) for w in words_of(t, text)[0]) for source in sources())
    return out


def main():
    with open(os.path.join(HERE, "texts.json"), encoding="utf-8") as f:
        texts = json.load(f)
    if "--train" in sys.argv or not os.path.exists(os.path.join(HERE, "unigram.json")):
        build(texts)
    cases = [(a, b, None if limit is None else max(limit, 4)) for a, b, limit in texts]
    cases += [(text, None, None) for text in MORE] + [(a, b, 9) for a, b in zip(MORE, MORE[1:])]
    golden = {"more": MORE, "ids": [], "digests": {}}
    with open(os.path.join(HERE, "unigram.json"), encoding="utf-8") as f:
        text = f.read()
    for name, change in FORMS.items():
        file = json.loads(text)
        change(file)
        t = Tokenizer.from_str(json.dumps(file))
        results = [words_of(t, *case) for case in cases]
        golden["digests"][name] = " ".join(digest(words) for words, _ in results)
        if name == "xlmr":
            golden["ids"] = [ids for _, ids in results[:40]]
    if os.path.isdir(SHARED):
        golden["sources"], golden["shared"] = sources(), shared_digests()
    with open(os.path.join(HERE, "unigram_golden.json"), "w", encoding="utf-8") as f:
        json.dump(golden, f, ensure_ascii=False)
        f.write("\n")


if __name__ == "__main__":
    main()
