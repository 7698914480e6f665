"""Writes engine/tokenizer/unicode_tables.c from what the Python package tokenizers does with every code point.

    pip install tokenizers && python spec/golden/tokenizer/tables.py

The Rust crates of tokenizers have different versions of Unicode (marks are older than lower case), so the tables are made from
what tokenizers does and not from the Unicode character database. Its normalizers do not show the combining classes; these are
found by letting NFD reorder pairs of marks. The C code relies on the assertions.
"""
import functools
import os

import tokenizers
from c_array import c_array
from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "..", "engine", "tokenizer", "unicode_tables.c")
DROP, WHITE, PUNCT, CJK, MARK, WORD = 1, 2, 4, 8, 16, 32
NUMERIC, COMBINING, COMPAT, LETTER, NUMBER, SPACE, WORDS, DIGIT = 64, 128, 256, 512, 1024, 2048, 4096, 8192
HANGUL = range(0xAC00, 0xD7A4)
CODES = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]

clean = normalizers.BertNormalizer(True, False, False, False).normalize_str
space_cjk = normalizers.BertNormalizer(False, True, False, False).normalize_str
strip = normalizers.BertNormalizer(False, False, True, False).normalize_str
lower = normalizers.Lowercase().normalize_str
nfd = normalizers.NFD().normalize_str
nfc = normalizers.NFC().normalize_str
nfkd = normalizers.NFKD().normalize_str
pre_tokenize = pre_tokenizers.BertPreTokenizer().pre_tokenize_str


def added(**options):
    t = Tokenizer(models.WordPiece({"[UNK]": 0}, unk_token="[UNK]"))
    t.add_tokens([AddedToken("@@", normalized=False, **options)])
    return t


single_word, stripping = added(single_word=True), added(lstrip=True, rstrip=True)


def only(answers, got):
    assert got in answers, (answers, got)
    return answers[got]


def class_flags():
    """The flags that one text of all code points shows: classes of tokenizers' regular expressions, digits, combining marks."""
    everything = "".join(map(chr, CODES))
    flags = dict.fromkeys(CODES, 0)

    def mark(flag, outside):
        for c in set(CODES) - set(map(ord, outside)):
            flags[c] |= flag

    for flag, pattern in ((LETTER, r"\p{L}"), (NUMBER, r"\p{N}"), (SPACE, r"\s"), (WORDS, r"\w"), (DIGIT, r"\d")):
        split = pre_tokenizers.Split(Regex(pattern), "removed").pre_tokenize_str
        mark(flag, "".join(piece for piece, _ in split(everything)))
    mark(COMBINING, normalizers.StripAccents().normalize_str(everything))
    separated = "".join("a" + chr(c) for c in CODES)
    for piece, _ in pre_tokenizers.Digits(True).pre_tokenize_str(separated):
        if len(piece) == 1 and piece != "a":
            flags[ord(piece)] |= NUMERIC
    for c in CODES:
        if nfkd(chr(c)) != nfd(chr(c)):
            flags[c] |= COMPAT
    return flags


def compositions(found):
    """The pairs of characters that NFC composes, without those of Hangul."""
    pairs = {}
    for c, (_, _, parts) in found.items():
        if len(parts) < 2 or c in HANGUL or nfc("".join(map(chr, parts))) != chr(c):
            continue
        first = nfc("".join(map(chr, parts[:-1])))
        assert len(first) == 1 and nfc(first + chr(parts[-1])) == chr(c), hex(c)
        pairs[ord(first), parts[-1]] = c
    return pairs


def properties(c):
    """Flags, lower case (as the difference of code points) and decomposition of one code point."""
    s = chr(c)
    pieces = tuple(word for word, _ in pre_tokenize("a" + s + "b"))
    cleaned = only({"a" + s + "b": 0, "ab": DROP, "a b": WHITE}, clean("a" + s + "b"))
    flags = cleaned & DROP
    flags |= only({("a", "b"): WHITE, ("a", s, "b"): PUNCT, ("a" + s + "b",): 0}, pieces)
    flags |= only({" " + s + " ": CJK, s: 0}, space_cjk(s))
    flags |= only({1: 0, 0: WORD}, single_word.encode(s + "@@").ids.count(1))
    assert single_word.encode("@@" + s).ids.count(1) == (0 if flags & WORD else 1)
    # One notion of white space: what is cleaned to ' ', what separates words, what lstrip and rstrip take.
    assert cleaned == DROP or cleaned == flags & WHITE
    taken = stripping.encode(s + "@@" + s)
    assert s == "@" or taken.offsets[taken.ids.index(1)] == ((0, 4) if flags & WHITE else (1, 3))
    parts = nfd(s)
    if parts == s:
        flags |= only({"ab": MARK, "a" + s + "b": 0}, strip("a" + s + "b"))
    low = lower(s)
    if c == 0x130:
        assert low == "i\u0307"  # the only one that becomes two, so the C code has it by name
        low = s
    assert len(low) == 1
    return flags, ord(low) - c, () if parts == s else tuple(map(ord, parts))


def classes(found):
    """The combining class of each code point that has one, as a rank: NFD sorts marks by their ranks."""

    def compare(a, b):
        return 0 if a == b else -1 if nfd(b + a) == a + b else 1 if nfd(a + b) == b + a else 0

    plain = [chr(c) for c in CODES if not found[c][2]]
    marks = [s for s in plain if compare(s, "\u0345") < 0 or compare(s, "\u0334") > 0]
    assert "\u0334" in marks and "\u0345" in marks and not any(compare(s, "a") for s in marks)
    ranks = []
    for s in marks:
        if all(compare(s, r) for r in ranks):
            ranks.append(s)
    ranks.sort(key=functools.cmp_to_key(compare))
    rank = {ord(s): 1 + next(i for i, r in enumerate(ranks) if compare(s, r) == 0) for s in marks}
    for s in marks:  # every pair of a mark and a representative is ordered as the ranks say
        assert all(compare(s, r) == (rank[ord(s)] > i) - (rank[ord(s)] < i) for i, r in enumerate(ranks, 1))
    return rank


def check(found, rank):
    for c, (flags, low, parts) in found.items():
        kept = [p for p in parts or (c,) if not found[p][0] & MARK]
        assert strip(chr(c)) == "".join(map(chr, kept))
        # A text of n bytes has at most n tokens: no code point becomes more characters than it has bytes.
        assert max(len(kept), 2 if c == 0x130 else 1) <= len(chr(c).encode())
        assert not any(found[p][2] for p in parts)
        # Marks of a decomposition follow a base or come in order, so the first part is never overtaken by its own others.
        assert not parts or all(rank.get(parts[0], 0) <= rank.get(p, 0) for p in parts)
        assert (flags ^ found[c + low][0]) & (WHITE | PUNCT) == 0
    for c in HANGUL:
        i = c - HANGUL.start
        jamo = (0x1100 + i // 588, 0x1161 + i % 588 // 28) + ((0x11A7 + i % 28,) if i % 28 else ())
        assert found[c][2] == jamo


def two_stages(values):
    def split(bits):
        blocks = {}
        first = [blocks.setdefault(tuple(values[i:i + (1 << bits)]), len(blocks)) for i in range(0, len(values), 1 << bits)]
        return bits, first, [v for b in blocks for v in b]

    return min((split(bits) for bits in range(4, 10)), key=lambda s: len(s[1]) * (1 if max(s[1]) < 256 else 2) + 2 * len(s[2]))


def main():
    found = {c: properties(c) for c in CODES}
    rank = classes(found)
    check(found, rank)
    more = class_flags()
    pool, records, values, compat = [], {}, [], []
    for c in range(0x110000):
        flags, low, parts = found.get(c, (0, 0, ()))
        if c in HANGUL:
            parts = ()  # by arithmetic
        at = 0
        if parts:
            at = len(pool)
            pool.extend(parts)
        flags |= more.get(c, 0)
        if flags & COMPAT:
            full = tuple(map(ord, nfkd(chr(c))))
            compat.append((c, len(pool), len(full)))
            pool.extend(full)
        values.append(records.setdefault((low, at, flags, rank.get(c, 0), len(parts)), len(records)))
    assert len(pool) < 65536
    pairs = sorted((a, b, c) for (a, b), c in compositions(found).items())
    bits, first, second = two_stages(values)
    with open(OUT, "w", encoding="ascii") as out:
        out.write("/* unicode_tables.c: written by spec/golden/tokenizer/tables.py, see unicode.h. "
                  f"From tokenizers {tokenizers.__version__}. */\n")
        out.write('#include "unicode.h"\n\n/* clang-format off */\n')
        out.write(f"_Static_assert(UNICODE_BITS == {bits}, \"unicode.h and the tables differ\");\n")
        out.write(c_array("unicode_first", "uint8_t", first))
        out.write(c_array("unicode_second", "uint16_t", second))
        out.write(c_array("unicode_records", "unicode_record", ["{%d,%d,%d,%d,%d}" % r for r in records]))
        out.write(c_array("unicode_parts", "uint32_t", pool))
        for name, ctype, rows in ("compat", "unicode_decomposition", compat), ("pair", "unicode_pair", pairs):
            out.write(c_array("unicode_" + name + "s" * (name == "pair"), ctype, ["{%d,%d,%d}" % r for r in rows]))
            out.write(f"const int unicode_{name}_count = {len(rows)};\n")
    print(f"{len(first)} + {len(second)} entries of {bits} bits, {len(records)} records, {len(pool)} parts, "
          f"{os.path.getsize(OUT)} bytes of text")


if __name__ == "__main__":
    main()
