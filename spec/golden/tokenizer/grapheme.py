"""Writes engine/tokenizer/grapheme_tables.c: the grapheme cluster class of every code point, for grapheme.h.

    pip install regex==2025.11.3 && python spec/golden/tokenizer/grapheme.py

This version of regex has Unicode 17, as tokenizers does; differential_unigram.py compares the clusters."""
import os

import regex
from c_array import c_array

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.path.join(HERE, "..", "..", "..", "engine", "tokenizer", "grapheme_tables.c")
BITS = 7
# The first that matches counts; the order of the numbers is grapheme.h's.
CLASSES = [("CONTROL", r"\p{GCB=Control}"), ("CR", r"\r"), ("LF", r"\n"), ("REGIONAL", r"\p{GCB=Regional_Indicator}"),
           ("PREPEND", r"\p{GCB=Prepend}"), ("L", r"\p{GCB=L}"), ("V", r"\p{GCB=V}"), ("T", r"\p{GCB=T}"), ("LV", r"\p{GCB=LV}"),
           ("LVT", r"\p{GCB=LVT}"), ("SPACING", r"\p{GCB=SpacingMark}"), ("ZWJ", r"\p{GCB=ZWJ}"), ("LINKER", r"\p{InCB=Linker}"),
           ("EXTEND", r"[\p{GCB=Extend}&&\p{InCB=Extend}]"), ("LOOSE", r"\p{GCB=Extend}"), ("CONSONANT", r"\p{InCB=Consonant}"),
           ("PICTOGRAPH", r"\p{Extended_Pictographic}")]
ORDER = ("PLAIN CONTROL CR LF PICTOGRAPH CONSONANT REGIONAL PREPEND L V T LV LVT SPACING EXTEND LINKER LOOSE ZWJ").split()


def main():
    text = "".join(map(chr, range(0x110000)))
    values = [0] * 0x110000
    taken = bytearray(0x110000)
    for name, pattern in CLASSES:
        for m in regex.finditer(pattern, text, regex.V1):
            if not taken[m.start()]:
                taken[m.start()] = 1
                values[m.start()] = ORDER.index(name)
    for c in range(0xD800, 0xE000):  # no text has them
        values[c] = 0
    blocks = {}
    first = [blocks.setdefault(tuple(values[i:i + (1 << BITS)]), len(blocks)) for i in range(0, len(values), 1 << BITS)]
    assert len(blocks) <= 256
    with open(OUT, "w", encoding="ascii") as out:
        out.write("/* grapheme_tables.c: written by spec/golden/tokenizer/grapheme.py, see grapheme.h. Unicode 17. */\n"
                  '#include "grapheme.h"\n\n/* clang-format off */\n')
        out.write(f"_Static_assert(GRAPHEME_BITS == {BITS} && GRAPHEME_ZWJ == {len(ORDER) - 1}, "
                  '"grapheme.h and the tables differ");\n')
        out.write(c_array("grapheme_first", "uint8_t", first))
        out.write(c_array("grapheme_second", "uint8_t", [v for b in blocks for v in b]))


if __name__ == "__main__":
    main()
