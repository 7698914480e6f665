"""Writes folders.json: folders of a checkpoint without tokenizer.json, and the answers of transformers for them.

    pip install transformers sentencepiece protobuf && python spec/golden/tokenizer/golden_folders.py

The vocabularies are small. A file whose content is "@NAME" is a copy of the file NAME in this folder."""
import json
import os
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
from transformers import AutoTokenizer  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
WORDS = ["a", "b", "##b", "e", "é", "A", "É", ".", "中", "##中", "[", "]", "mask", "un", "##used", "1", "##1", "<", ">", "x", "/", "s"]
BERT = ["[PAD]", "[unused1]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + WORDS
MPNET = ["<s>", "<pad>", "</s>", "[UNK]"] + WORDS + ["<mask>"]
BYTES = [chr(c) for c in list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x144))]
MERGES = ["Ġ a", "a b", "Ġa b", "Ġ Ġ"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>"] + BYTES + [m.replace(" ", "") for m in MERGES] + ["<mask>"]
TEXTS = ["a b", "  ab  a ", "A é É 中a.", "a [MASK] b", "a <mask> b", "<mask>[MASK]", "a <x>b<y> [unused1]", "</s> <s>x[SEP]",
         "<s>NOTUSED e<ent>", ""]


def lines(pieces):
    return "".join(p + "\n" for p in pieces)


def bert(config=None, **more):
    return {"vocab.txt": lines(BERT), "config.json": {"model_type": "bert"}, "tokenizer_config.json": config or {}, **more}


def mpnet(config=None, **more):
    return dict(bert(config, **more), **{"vocab.txt": lines(MPNET), "config.json": {"model_type": "mpnet"}})


def token(content, **flags):
    return dict(dict(content=content, lstrip=False, rstrip=False, single_word=False, normalized=False), **flags)


def added(content, **flags):
    return dict(token(content, **flags), __type="AddedToken")


MASK = added("<mask>", lstrip=True)


def roberta(config=None, kind="roberta", **more):
    return {"vocab.json": {p: i for i, p in enumerate(ROBERTA)}, "merges.txt": "#version: 0.2\n" + lines(MERGES),
            "config.json": {"model_type": kind}, "tokenizer_config.json": dict({"mask_token": MASK}, **config or {}), **more}


def pieces(kind, config=None, **more):
    return {"sentencepiece.bpe.model": "@unigram.model", "config.json": {"model_type": kind},
            "tokenizer_config.json": dict({"mask_token": MASK}, **config or {}), **more}


SPECIAL = {"special_tokens_map.json": {"mask_token": token("[MASK]", lstrip=True), "sep_token": "[SEP]",
                                       "additional_special_tokens": ["[unused1]"]}}
FOLDERS = [
    bert(), bert({"do_lower_case": False}), bert({"do_lower_case": False, "strip_accents": True, "tokenize_chinese_chars": False}),
    bert({"strip_accents": False, "tokenizer_class": "ElectraTokenizer"}),
    bert(None, **{"added_tokens.json": {"<y>": len(BERT) + 1, "<x>": len(BERT)}}),
    bert({"additional_special_tokens": ["<x>", "[unused1]", added("<y>", rstrip=True, special=True)]}),
    bert({"sep_token": "</s>"}, **SPECIAL),
    bert({"mask_token": "[MASK]", "added_tokens_decoder": {
        str(len(BERT) + 1): token("<y>", lstrip=True, special=True), str(len(BERT)): token("<x>", normalized=True, special=False),
        "5": token("[MASK]", special=True)}}, **SPECIAL),
    mpnet(), mpnet({"tokenizer_class": "MPNetTokenizer", "do_lower_case": False}), mpnet({"mask_token": added("<mask>")}),
    roberta(), roberta({"add_prefix_space": True}), roberta({"trim_offsets": False}),
    roberta({"add_prefix_space": True, "trim_offsets": False}, **{"added_tokens.json": {"<x>": len(ROBERTA)}}),
    roberta({"additional_special_tokens": ["<y>"], "mask_token": added("<mask>")}),
    pieces("xlm-roberta"), pieces("xlm-roberta", {"additional_special_tokens": ["<ent>", "<x>"]}),
    pieces("xlm-roberta", {"tokenizer_class": "XLMRobertaTokenizer", "mask_token": added("<mask>")}),
    mpnet({"extra_special_tokens": [added("[UNK]", normalized=True), added("</s>", rstrip=True)]}),
    roberta(None, **{"added_tokens.json": {"<x>": 30, "<s>": 38}, "special_tokens_map.json": {
        "sep_token": token("<s>", normalized=True), "additional_special_tokens": ["</s>", "<x>"]}}),
    roberta({"mask_token": "<mask>"}), pieces("xlm-roberta", {"mask_token": "<mask>"}),
    pieces("camembert", {"mask_token": "<mask>"}), mpnet({"mask_token": "<mask>"}),
    pieces("camembert"), pieces("camembert", {"additional_special_tokens": ["<s>NOTUSED", "</s>NOTUSED"]}),
]


def write(folder, files):
    for name, content in files.items():
        if isinstance(content, str) and content[:1] == "@":
            with open(os.path.join(HERE, content[1:]), "rb") as f:
                content = f.read()
        elif not isinstance(content, str):
            content = json.dumps(content)
        with open(os.path.join(folder, name), "wb") as f:
            f.write(content if isinstance(content, bytes) else content.encode())


def answers(files):
    with tempfile.TemporaryDirectory() as folder:
        write(folder, files)
        t = AutoTokenizer.from_pretrained(folder)
    out = {"special": [getattr(t, k + "_token_id") for k in ("unk", "cls", "sep", "pad", "mask")], "cases": []}
    for i, text in enumerate(TEXTS):
        pair = TEXTS[i - 1] if i % 2 else None
        e = t(text, pair, return_offsets_mapping=True, return_token_type_ids=True)
        out["cases"].append({"ids": e["input_ids"], "types": e["token_type_ids"], "offsets": e["offset_mapping"],
                             "text": t.decode(e["input_ids"], skip_special_tokens=True, clean_up_tokenization_spaces=False)})
    return out


def main():
    with open(os.path.join(HERE, "folders.json"), "w", encoding="utf-8") as f:
        f.write('{"texts":' + json.dumps(TEXTS, ensure_ascii=False) + ',"folders":[\n')
        f.write(",\n".join(json.dumps(dict(files=files, **answers(files)), ensure_ascii=False, separators=(",", ":"))
                           for files in FOLDERS))
        f.write("\n]}\n")


if __name__ == "__main__":
    main()
