"""Compares AutoTokenizer of transformers with Perigee on random folders of tokenizer files, and prints the differences.

    pip install transformers sentencepiece protobuf
    python spec/golden/tokenizer/differential_folders.py [--folders 500] [--seed 1] [--keep FOLDER]
    python spec/golden/tokenizer/differential_folders.py --write     (folders_random.json, which folders_spec.lua reads)

A folder has the files of one family of tokenizers, with or without tokenizer.json, and tokenizer_config.json,
special_tokens_map.json and added_tokens.json with keys at random. Compared are ids, token types, offsets and decoded texts of
texts and pairs, whole and cut off on either side, the special tokens and the number of pieces. A folder that transformers refuses
says nothing; one that only ours refuses is counted by its message."""
import argparse
import collections
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"
warnings.filterwarnings("ignore")
from golden_folders import BERT, MPNET, ROBERTA, added, lines, token, write  # noqa: E402
from golden_folders import MERGES as BYTE_MERGES  # noqa: E402
from transformers import AutoTokenizer  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
TEXTS = ["a b", "  ab  a ", "A é É 中a.", "a [MASK] b", "a <mask> b", "<mask>[MASK]", "a <x>b<y> [unused1]", "</s> <s>x[SEP]",
         "<s>NOTUSED e<ent>", "", "a b ab a b ab [MASK] a e 1 1 e", "b <own> b<second>. ' a 's b , a !", "[X]<m> aéb [CLS]a",
         "<unk> [UNK] <pad>[PAD]", " ab\tab\nA  B"]
NEW = ["<x>", "<y>", "<ent>", "<own>", "<second>", "[X]", "<m>"]
KEYS = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"]


class Family:
    def __init__(self, name, files, types, classes, known):
        self.name, self.files, self.types, self.classes, self.known = name, files, types, classes, known


FAMILIES = [
    Family("bert", {"vocab.txt": lines(BERT)}, ["bert", "distilbert", "electra"],
           ["BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizerFast", "PreTrainedTokenizerFast"],
           ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "é"]),
    Family("mpnet", {"vocab.txt": lines(MPNET)}, ["mpnet"], ["MPNetTokenizer", "MPNetTokenizerFast", "PreTrainedTokenizerFast"],
           ["<s>", "<pad>", "</s>", "[UNK]", "<mask>", "a", "b"]),
    Family("roberta", {"vocab.json": {p: i for i, p in enumerate(ROBERTA)}, "merges.txt": "#version: 0.2\n" + lines(BYTE_MERGES)},
           ["roberta"], ["RobertaTokenizer", "RobertaTokenizerFast", "PreTrainedTokenizerFast"],
           ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "Ġa"]),
    Family("xlm-roberta", {"sentencepiece.bpe.model": "@unigram.model"}, ["xlm-roberta"],
           ["XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "PreTrainedTokenizerFast"],
           ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]),
    Family("xlnet", {"spiece.model": "@unigram.model"}, ["xlnet"], ["XLNetTokenizer", "XLNetTokenizerFast"],
           ["<s>", "</s>", "<unk>"]),
    Family("camembert", {"sentencepiece.bpe.model": "@unigram.model"}, ["camembert"],
           ["CamembertTokenizer", "CamembertTokenizerFast"], ["<s>", "<pad>", "</s>", "<unk>", "<mask>", "<s>NOTUSED"]),
]


class Maker:
    def __init__(self, seed):
        self.r = random.Random(seed)

    def chance(self, p):
        return self.r.random() < p

    def flags(self):
        return {k: True for k in ("lstrip", "rstrip", "single_word", "normalized") if self.chance(0.25)}

    def text(self, family):
        return self.r.choice(family.known if self.chance(0.75) else NEW)

    def named(self, family, stated):
        """A special token as a file gives it: a text or an object."""
        text = self.text(family)
        if self.chance(0.6):
            return text
        more = self.flags()
        if self.chance(0.5):
            more["special"] = self.chance(0.8)
        return dict(added(text, **more)) if stated else token(text, **more)

    def some(self, family):
        return [self.text(family) if self.chance(0.6) else added(self.text(family), **self.flags())
                for _ in range(self.r.randint(0, 3))]

    def config(self, family, has_json):
        r, c = self.r, {}
        if self.chance(0.6):
            c["tokenizer_class"] = r.choice(family.classes)
        for key, values in {
            "do_lower_case": [True, False], "strip_accents": [True, False, None], "tokenize_chinese_chars": [True, False],
            "add_prefix_space": [True, False], "trim_offsets": [True, False], "truncation_side": ["left", "right"],
            "padding_side": ["left", "right"], "clean_up_tokenization_spaces": [True, False], "do_basic_tokenize": [True, False],
            "never_split": [None, ["b"]], "use_fast": [True, False], "errors": ["replace", "strict"], "sp_model_kwargs": [{}],
            "model_max_length": [512, 1000000000000000019884624838656], "split_special_tokens": [False], "max_length": [7],
            "model_input_names": [["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]],
            "add_bos_token": [True, False], "name_or_path": ["x"], "stride": [0],
        }.items():
            if self.chance(0.25):
                c[key] = r.choice(values)
        for key in KEYS:
            if self.chance(0.2):
                c[key] = self.named(family, True)
        if self.chance(0.05):
            c[r.choice(["pad_token", "mask_token"])] = None
        for key in ("additional_special_tokens", "extra_special_tokens"):
            if self.chance(0.15):
                c[key] = self.some(family)
        if self.chance(0.1):
            c["extra_special_tokens"] = {"z_token": r.choice(NEW), "a_token": r.choice(NEW)}
        if self.chance(0.15):
            for key in r.sample(["own_token", "second_token", "another_token"], 2):
                c[key] = r.choice(NEW)
        if self.chance(0.4):
            c["added_tokens_decoder"] = self.decoder(family)
        return c

    def decoder(self, family):
        ids, entries = list(range(2, 60)), {}
        for _ in range(self.r.randint(0, 5)):
            entries[str(ids.pop(self.r.randrange(len(ids))))] = dict(token(self.text(family), **self.flags()),
                                                                     special=self.chance(0.6))
        return entries

    def special_map(self, family):
        m = {key: self.named(family, False) for key in KEYS if self.chance(0.3)}
        for value in m.values():
            if isinstance(value, dict):
                value.pop("special", None)
        if self.chance(0.3):
            m["additional_special_tokens"] = [self.text(family) for _ in range(self.r.randint(0, 3))]
        return m

    def tokenizer_json(self, family):
        """The tokenizer.json that a tokenizer of this family saves, with random changes."""
        with tempfile.TemporaryDirectory() as folder:
            config = {k: v for k, v in self.config(family, False).items() if k not in ("tokenizer_class", "added_tokens_decoder")
                      and not k.endswith("_token") and not k.endswith("special_tokens")}
            write(folder, dict(family.files, **{"config.json": {"model_type": family.types[0]}, "tokenizer_config.json": config}))
            d = json.loads(AutoTokenizer.from_pretrained(folder).backend_tokenizer.to_str())
        if self.chance(0.4):
            d["truncation"] = {"direction": self.r.choice(["Left", "Right"]), "max_length": 6, "strategy": "LongestFirst",
                               "stride": 0}
        if self.chance(0.4):
            d["padding"] = {"strategy": "BatchLongest", "direction": self.r.choice(["Left", "Right"]), "pad_to_multiple_of": None,
                            "pad_id": 1, "pad_type_id": 0, "pad_token": self.r.choice(family.known)}
        if self.chance(0.2) and family.name != "roberta":
            d["normalizer"] = {"type": "Lowercase"}
        if self.chance(0.2):
            d["added_tokens"].append(dict(token("<x>", **self.flags()), id=90, special=self.chance(0.5)))
        if self.chance(0.2) and d["model"]["type"] == "WordPiece":
            d["model"]["max_input_chars_per_word"] = 3
        if self.chance(0.1):
            d["post_processor"] = None
        return d

    def folder(self):
        family = self.r.choice(FAMILIES)
        files, has_json = dict(family.files), self.chance(0.5)
        if has_json:
            if self.chance(0.7):
                files = {}
            files["tokenizer.json"] = self.tokenizer_json(family)
        files["config.json"] = {"model_type": self.r.choice(family.types)}
        if self.chance(0.1):
            files["config.json"]["tokenizer_class"] = self.r.choice(family.classes)
        if self.chance(0.9):
            files["tokenizer_config.json"] = self.config(family, has_json)
        if self.chance(0.3):
            files["special_tokens_map.json"] = self.special_map(family)
        if self.chance(0.2):
            files["added_tokens.json"] = {self.text(family): i for i in self.r.sample(range(20, 60), self.r.randint(0, 3))}
        return files

    def cases(self):
        list_ = []
        for i, text in enumerate(TEXTS):
            pair = TEXTS[i - 1] or None
            list_.append({"text": text})
            list_.append({"text": text, "pair": pair})
            for truncate in ["longest"] + (["second"] if pair else []):
                list_.append({"text": text, "pair": pair, "max": self.r.randint(4, 9), "truncate": truncate,
                              "side": self.r.choice([None, "left", "right"])})
            list_.append({"text": text, "max": self.r.randint(2, 6), "truncate": "longest"})
        return list_


STRATEGIES = {"longest": "longest_first", "first": "only_first", "second": "only_second"}


def reference(t, c):
    side = t.truncation_side
    t.truncation_side = c.get("side") or side
    more = dict(truncation=STRATEGIES[c["truncate"]], max_length=c["max"]) if "max" in c else {}
    try:
        e = t(c["text"], c.get("pair"), return_offsets_mapping=True, **more)
    except BaseException as error:  # tokenizers panics if it cannot truncate
        return {"error": str(error)}
    finally:
        t.truncation_side = side
    ids = e["input_ids"]
    return {"ids": ids, "types": e.get("token_type_ids") or [0] * len(ids),
            "offsets": [o for p in e["offset_mapping"] for o in p],
            "text": t.decode(ids, skip_special_tokens=True), "whole": t.decode(ids)}


def reference_of(folder, cases):
    try:
        t = AutoTokenizer.from_pretrained(folder)
        special = [getattr(t, k + "_token_id") for k in ("unk", "cls", "sep", "pad", "mask")]
        return {"special": special, "size": len(t), "left": t.truncation_side == "left", "class": type(t).__name__,
                "cases": [reference(t, c) for c in cases]}
    except BaseException as error:
        return {"error": f"{type(error).__name__}: {error}"}


def difference(theirs, ours, cases):
    if "error" in ours:
        return "refused: " + re.sub(r"'[^']*/([^/']*)'", r"\1", ours["error"])
    for a, b, name in zip(theirs["special"], ours["special"], ("unk", "cls", "sep", "pad", "mask")):
        if a is not None and a != b:
            return f"special {name}: {a}, ours {b}"
    if theirs["size"] != ours["size"] and not theirs["class"].startswith(("XLM", "Camem")):  # equal pieces count once there
        return f"size: {theirs['size']}, ours {ours['size']}"
    for a, b, c in zip(theirs["cases"], ours["cases"], cases):
        if "error" in a:
            continue
        if "error" in b:
            return f"{c}: ours refused: {b['error']}"
        for key in ("ids", "types", "offsets", "text", "whole"):
            if a[key] != (b[key] or type(a[key])()):  # an empty list is {} as our worker writes it
                return f"{c} {key}\n    {a[key]}\n    {b[key]}"
    return None


def golden(count):
    """The first `count` folders that transformers loads and whose files are small, and its answers to some of the cases."""
    seed, list_ = 0, []
    while len(list_) < count:
        seed += 1
        maker = Maker(seed)
        files, cases = maker.folder(), maker.cases()[seed % 4::4]
        if "tokenizer.json" in files and len(files["tokenizer.json"]["model"]["vocab"]) > 400:
            continue
        with tempfile.TemporaryDirectory() as folder:
            write(folder, files)
            answer = reference_of(folder, cases)
        known = files.get("tokenizer_config.json", {}).get("unk_token")
        if "error" in answer or known is not None and "<" in str(known):
            continue
        both = [dict(c, **{k: a[k] for k in ("ids", "types", "offsets")}) for c, a in zip(cases, answer["cases"])
                if "error" not in a]
        # as texts, so that keys keep their order
        files = {k: v if isinstance(v, str) else json.dumps(v, ensure_ascii=False) for k, v in files.items()}
        list_.append({"files": files, "special": answer["special"], "cases": both})
    with open(os.path.join(HERE, "folders_random.json"), "w", encoding="utf-8") as f:
        f.write("[" + ",\n".join(json.dumps(x, ensure_ascii=False, separators=(",", ":")) for x in list_) + "]\n")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true", help="write folders_random.json")
    parser.add_argument("--folders", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", help="a folder to copy what differs to")
    args = parser.parse_args()
    if args.write:
        return golden(60)
    p = subprocess.Popen(["luajit", os.path.join(HERE, "folders_worker.lua")], cwd=TOP, stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, text=True)
    counts, refused, shown = collections.Counter(), collections.Counter(), 0
    for i in range(args.folders):
        maker = Maker(args.seed * 1000003 + i)
        files, cases = maker.folder(), maker.cases()
        folder = tempfile.mkdtemp()
        write(folder, files)
        theirs = reference_of(folder, cases)
        if "error" in theirs:
            counts["refused by transformers"] += 1
            shutil.rmtree(folder)
            continue
        p.stdin.write(json.dumps({"folder": folder, "cases": cases}) + "\n")
        p.stdin.flush()
        found = difference(theirs, json.loads(p.stdout.readline()), cases)
        kind = found.split(":")[0] if found else "equal"
        counts[kind if kind in ("refused", "equal") else "different"] += 1
        if kind == "refused":
            refused[found] += 1
        elif found and shown < 12:
            shown += 1
            small = {k: v for k, v in files.items() if k not in ("vocab.txt", "vocab.json", "merges.txt", "tokenizer.json")}
            j = files.get("tokenizer.json")
            more = ", tokenizer.json " + json.dumps([j["added_tokens"], j["truncation"]]) if j else ""
            print(f"folder {i} ({theirs['class']}{more}): {found}\n  {json.dumps(small, ensure_ascii=False)}")
            if args.keep:
                shutil.copytree(folder, os.path.join(args.keep, str(i)), dirs_exist_ok=True)
        shutil.rmtree(folder)
    print(dict(counts))
    for message, count in refused.most_common():
        print(count, message)
    sys.exit(counts["different"] > 0)


if __name__ == "__main__":
    main()
