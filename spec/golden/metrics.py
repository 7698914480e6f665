"""Writes metrics.json: the scores that public implementations give to answers, for evaluate_spec.lua.

    pip install scipy scikit-learn seqeval torchmetrics pytrec-eval-terrier && python spec/golden/metrics.py

Correlations by scipy; accuracy, F1, Matthews, average precision by scikit-learn, with sample weights too; entities by seqeval; exact match and F1 of
answers by torchmetrics (SQuAD 1.1); rankings by pytrec_eval, which runs trec_eval. No package has MLQA's rules; this
script implements them with Python's own tables of Unicode."""
import json
import os
import random
import re
import string
import sys
import unicodedata

import pytrec_eval
from scipy import stats
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.scheme import IOB2
from sklearn import metrics as sk
from torchmetrics.functional.text import squad

rng = random.Random(20)


def numbers():
    cases = []
    for n, kinds in ((5, 100), (40, 6), (200, 1000)):
        a = [rng.randrange(kinds) / 7 for _ in range(n)]
        b = [x * rng.random() + rng.randrange(kinds) / 9 for x in a]
        weights = [rng.choice((0, 0, 1, 1, 2, 3)) for _ in range(n)]
        many = [i for i, w in enumerate(weights) for _ in range(w)]
        a2, b2 = [a[i] for i in many], [b[i] for i in many]
        cases.append({"a": a, "b": b, "weights": weights, "pearson": stats.pearsonr(a, b)[0], "spearman": stats.spearmanr(a, b)[0],
                      "weighted_pearson": stats.pearsonr(a2, b2)[0], "weighted_spearman": stats.spearmanr(a2, b2)[0]})
    return cases


def average_precision():
    own = random.Random(7)  # its own, so that the other cases stay what they are
    cases = []
    for n, kinds in ((6, 4), (50, 12), (200, 100000)):
        labels = [own.randrange(2) for _ in range(n)]
        scores = [label * 0.3 + own.randrange(kinds) / kinds for label in labels]
        weights = [own.choice((0, 0, 1, 1, 2, 3)) for _ in range(n)]
        cases.append({"scores": scores, "labels": labels, "weights": weights, "value": sk.average_precision_score(labels, scores),
                      "weighted": sk.average_precision_score(labels, scores, sample_weight=weights)})
    return cases


def classes():
    cases = []
    for n, names in ((12, "ab"), (60, "abc"), (150, "abcdefgh")):
        labels = [rng.choice(names) for _ in range(n)]
        answers = [l if rng.random() < 0.6 else rng.choice(names) for l in labels]
        weights = [rng.choice((0, 0, 1, 1, 2, 3)) for _ in range(n)]
        many = [i for i, w in enumerate(weights) for _ in range(w)]
        case = {"answers": answers, "labels": labels, "weights": weights}
        for prefix, l, p in (("", labels, answers), ("weighted_", [labels[i] for i in many], [answers[i] for i in many])):
            case[prefix + "accuracy"] = sk.accuracy_score(l, p)
            case[prefix + "macro_f1"] = sk.f1_score(l, p, average="macro")
            case[prefix + "f1_of_a"] = sk.f1_score(l, p, labels=["a"], average=None)[0]
            case[prefix + "matthews"] = sk.matthews_corrcoef(l, p)
        cases.append(case)
    return cases


def entities():
    cases = []
    for tags in (["O", "B-X", "I-X", "B-Y", "I-Y"], ["O", "B-X", "I-X", "E-X", "S-X", "I-Y", "E-Y", "S-Y"]):
        for n in (1, 3, 40):
            labels = [[rng.choice(tags) for _ in range(rng.randrange(1, 12))] for _ in range(n)]
            answers = [[t if rng.random() < 0.8 else rng.choice(tags) for t in line] for line in labels]
            case = {"answers": answers, "labels": labels}
            for name, f in (("f1", f1_score), ("precision", precision_score), ("recall", recall_score)):
                case[name] = float(f(labels, answers, zero_division=0))
                if "E-X" not in tags:
                    case["strict_" + name] = float(f(labels, answers, mode="strict", scheme=IOB2, zero_division=0))
            cases.append(case)
    return cases


WORDS = ("the a an The cat sat, on mat. 1990 $5.00 U.S. New-York it's ÄPFEL Straße naïve “quoted” — İstanbul ΟΔΥΣΣΕΙΑ a_b a\u0301 "
         "x\u00a0y the—end (the) 中国 的 का है").split(" ")


def answers():
    cases = []
    for _ in range(60):
        words = [rng.choice(WORDS) for _ in range(rng.randrange(1, 8))]
        references = [" ".join(w for w in words if rng.random() < 0.8) or "cat" for _ in range(rng.randrange(1, 4))]
        answer = " ".join(words[rng.randrange(len(words)):] if rng.random() < 0.7 else words)
        # Texts of which nothing is left: 1.1 has no rule for them.
        references = [r for r in references if re.sub(r"\b(a|an|the)\b|[^\w]", "", r.lower()).strip("_")] or ["cat"]
        if not re.sub(r"\b(a|an|the)\b|[^\w]", "", answer.lower()).strip("_"):
            continue
        got = squad([{"prediction_text": answer, "id": "1"}],
                    [{"answers": {"answer_start": [0] * len(references), "text": references}, "id": "1"}])
        cases.append({"answer": answer, "references": references, "exact": float(got["exact_match"]) / 100, "f1": float(got["f1"]) / 100})
    return cases


PUNCTUATION = {chr(c) for c in range(sys.maxunicode + 1) if unicodedata.category(chr(c)).startswith("P")} | set(string.punctuation)
ARTICLES = {
    "en": "a an the", "es": "un una unos unas el la los las", "de": "ein eine einen einem eines einer der die das den dem des",
    "vi": "của là cái chiếc những",
}
TEXTS = {
    "en": ["The “New” York—the city’s end!", "a b, an c"], "de": ["Der Fluß; die ÄPFEL («das» Haus)", "einer von DEN vielen"],
    "es": ["¿El niño? ¡La Niña y los años!"], "vi": ["Những con mèo của là", "CÁI bàn"], "hi": ["यह किताब है। राम का घर"],
    "zh": ["他在1990年去了New York，中国。", "中 国 人"], "ar": ["ذهب الولد إلى المدرسة، ثم البيت", "القاهرة"], "ru": ["Россия — «Москва», а the"],
    "th": ["ประเทศไทย ๆ"],
}


def words(text, language):
    text = "".join(c for c in text.lower() if c not in PUNCTUATION)
    if language in ARTICLES:
        text = re.sub(r"\b(" + ARTICLES[language].replace(" ", "|") + r")\b", " ", text)
    elif language == "ar":
        text = text.replace("ال", " ")
    if language == "zh":
        text = re.sub("([\u4e00-\u9fa5])", r" \1 ", text)
    return text.split()


def main():
    rankings = []
    for n in (1, 8, 30):
        order = ["d%02d" % i for i in range(n)]
        rng.shuffle(order)
        judged = {d: rng.choice((0, 0, 1, 2, 3)) for d in order[::2] + ["missing"]}
        judged["missing"] = 2
        run = {"q": {d: float(n - i) for i, d in enumerate(order)}}
        got = pytrec_eval.RelevanceEvaluator({"q": judged}, {"ndcg_cut.5,10", "recall.5,10", "recip_rank"}).evaluate(run)["q"]
        rankings.append({"order": order, "judgements": judged, **got})
    languages = [{"language": l, "text": t, "words": words(t, l)} for l, texts in TEXTS.items() for t in texts]
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "metrics.json")
    with open(path, "w") as f:
        json.dump({"numbers": numbers(), "classes": classes(), "entities": entities(), "answers": answers(), "languages": languages,
                   "rankings": rankings, "average_precision": average_precision()}, f, ensure_ascii=False, separators=(",", ":"))
        f.write("\n")


main()
