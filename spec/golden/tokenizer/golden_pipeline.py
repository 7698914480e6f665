"""Makes pipeline.json in this folder: small random tokenizers with every component, and what tokenizers gives for some texts.

    pip install tokenizers && python spec/golden/tokenizer/golden_pipeline.py

pipeline.json is a list of { file = a tokenizer.json, cases = list of { a =, b =, limit =, bare =, words =, and the fields of
Ours.encode's result } }; see ours.py. pipeline_spec.lua reads it."""
import json
import os
import random

from tokenizers import Tokenizer

import differential
import differential_pipeline
from ours import reference_of
from reference import HERE

TOKENIZERS, CASES, WORDS = 36, 10, 30


def well_formed(rng, pieces, tokens):
    return differential.text(rng, pieces, tokens).decode(errors="replace")[:80]


def main():
    out, kinds = [], set()
    for seed in range(1000):
        rng = random.Random(seed)
        differential_pipeline.SAMPLE = WORDS
        file, words = differential_pipeline.draw(rng, lambda r: well_formed(r, ["the", "##ing", "un", "a", "é"], ["Yes"]))
        text = json.dumps(file)
        here = set(part.split('"')[0] for part in text.split('"type": "')[1:])
        if len(text) > 12000 or (len(out) > 24 and here <= kinds):
            continue
        kinds |= here
        t, cases, tokens = Tokenizer.from_str(text), [], [a["content"] for a in file["added_tokens"]]
        while len(cases) < CASES:
            a, b = well_formed(rng, words or ["a"], tokens), well_formed(rng, words or ["a"], tokens) if rng.random() < 0.3 else None
            limit = None if '"type_id": 3' in text else rng.choice([None, None, 8, 13])
            bare, in_words = rng.random() < 0.2, b is None and rng.random() < 0.2
            given = [w.encode() for w in a.split(" ")] if in_words else a.encode()
            answer = reference_of(t, given, None if b is None else b.encode(), limit, bare)
            assert isinstance(answer, dict), answer
            cases.append(dict(answer, a=a, b=b, limit=limit, bare=bare, in_words=in_words))
        out.append(dict(file=file, cases=cases))
        if len(out) == TOKENIZERS:
            break
    with open(os.path.join(HERE, "pipeline.json"), "w", encoding="ascii") as f:
        f.write("[\n" + ",\n".join(json.dumps(x, separators=(",", ":")) for x in out) + "\n]\n")
    print(len(out), "tokenizers,", ", ".join(sorted(kinds)))


if __name__ == "__main__":
    main()
