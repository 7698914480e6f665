#!/usr/bin/env python3
"""Makes the texts of recipes/data from three public sets: make_texts.py DATA

DATA has the folders banking77, clinc150 and wnut17 as their authors publish them (recipes/data/README.md says where). Needs only
Python 3.8 or newer. Equal inputs give equal bytes. Texts for calibration are from training sets (and wnut17), texts for evaluation
from test sets, so no text is in both.
"""
import csv, json, os, random, re, sys

DATA = sys.argv[1]
OUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../recipes/data")
# Texts that match are left out: they are not running text, or unpleasant in a demo.
UNWANTED = re.compile(r"""https?:|[@&\[\]*~_\\/$^]|[^\x00-\x7f]|\b(?:rap(?:e|ed|ist)|racis\w*|nazi\w*|kill\w*|murder\w*|suicid\w*|terror\w*|dead|death|drugs?|
  guns?|bomb\w*|attack\w*|hack\w*|exploit\w*|payload\w*|vot(?:e|es|ed|ing)|election\w*|politic\w*|president\w*|trump\w*|clinton\w*|bully|bullied)\b""", re.I | re.X)
QUESTIONS = slice(322, 700)  # the part of wnut17's test set that comes from question-and-answer sites


def read(*parts):
    return open(os.path.join(DATA, *parts), encoding="utf-8", newline="")


def clean(text):
    return re.sub(r"\s+", " ", text).strip()


def banking(name):
    with read("banking77", name) as f:
        return [(clean(r["text"]), r["category"].lower()) for r in csv.DictReader(f)]


def wnut():
    """The texts of wnut17, which are lists of tokens. Removes the spaces before punctuation and inside contractions."""
    with read("wnut17", "emerging.test.annotated") as f:
        blocks = re.split(r"\n\s*\n", f.read().replace("\r", ""))[QUESTIONS]
    texts = []
    for block in blocks:
        t = clean(" ".join(line.split("\t")[0] for line in block.strip().split("\n")))
        t = re.sub(r" (?=[.,!?;:)%])", "", t)
        t = re.sub(r" n ' t\b", "n't", t)
        t = re.sub(r" ' (s|t|m|re|ve|ll|d)\b", r"'\1", t)
        t = re.sub(r"\( ", "(", t)
        if len(t.split()) >= 4 and not UNWANTED.search(t):
            texts.append(t)
    return texts


def paragraphs(rng, pool, count, low, high):
    """Makes `count` texts of `low` to `high` words, each of consecutive sentences of one group of the pool."""
    made = []
    for _ in range(count):
        group, want, text = rng.choice(pool), rng.randint(low, high), []
        at = rng.randrange(len(group))
        while sum(len(t.split()) for t in text) < want:
            t = group[at % len(group)]
            text.append(t if t[-1] in ".!?" else t + ".")
            at += 1
        made.append(" ".join(" ".join(text).split()[:want]))
    return made


def write(name, lines):
    assert len(set(lines)) == len(lines) and not any("\n" in l or "\r" in l for l in lines)
    with open(os.path.join(OUT, name), "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(l + "\n" for l in lines))
    print(f"{name}: {len(lines)} lines, {sum(len(l.encode()) + 1 for l in lines)} bytes")


def main():
    rng = random.Random(77)
    with read("clinc150", "data_full.json") as f:
        clinc = json.load(f)
    with read("clinc150", "domains.json") as f:
        domain = {intent: d for d, intents in json.load(f).items() for intent in intents}

    bank = banking("train.csv")
    web = wnut()
    train = [(clean(t), i) for t, i in clinc["train"]]
    by = {}
    for t, label in bank + train:
        by.setdefault(label, []).append(t)
    groups = list(by.values()) + [web] * 60
    short = rng.sample([t for t, _ in bank], 160) + rng.sample([t for t, _ in train], 120) + rng.sample(web, 140)
    lines = short + paragraphs(rng, groups, 120, 30, 90) + paragraphs(rng, groups, 80, 90, 330)
    lines = list(dict.fromkeys(lines))
    rng.shuffle(lines)
    write("calibration.txt", lines)

    # Intents: 40 of banking77's, 8 test questions each. Pairs: clinc150's test questions, 2 same intent, 1 same domain, 0 else.
    test = {}
    for t, label in banking("test.csv"):
        test.setdefault(label, []).append(t)
    rows = [f"{t}\t{label}" for label in rng.sample(sorted(test), 40) for t in rng.sample(test[label], 8)]
    rng.shuffle(rows)
    write("intents.tsv", rows)

    test, pairs = {}, []
    for t, label in clinc["test"]:
        test.setdefault(label, []).append(clean(t))
    intents = sorted(test)
    for i in range(450):
        a = intents[i % len(intents)]
        near = [b for b in intents if domain[b] == domain[a] and b != a]
        far = [b for b in intents if domain[b] != domain[a]]
        score = i // len(intents)
        first, second = rng.sample(test[a], 2)
        pairs.append(f"{first}\t{second if score == 2 else rng.choice(test[rng.choice(near if score else far)])}\t{score}")
    pairs = list(dict.fromkeys(pairs))
    rng.shuffle(pairs)
    write("pairs.tsv", pairs)


main()
