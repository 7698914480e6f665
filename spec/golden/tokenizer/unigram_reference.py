"""Unigram by the `tokenizers` package, and the texts of ../shared: what unigram.py and differential_unigram.py share."""
import glob
import json
import os
import re

from sentencepiece import sentencepiece_model_pb2
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..", "..")
SHARED = os.path.join(TOP, "..", "shared", "data")
SPACE = dict(replacement="▁", prepend_scheme="always")
# Models of ../shared and the tokenizer_class that goes with them; None: as the model says.
MODELS = [("xlm-roberta-base/tokenizer.json", None), ("xlm-roberta-base/sentencepiece.bpe.model", "XLMRobertaTokenizer"),
          ("xlnet/spiece.model", "XLNetTokenizer"), ("xlnet/spiece.model", None),
          ("curated-tokenizers-tests/toy.model", "CamembertTokenizer"), ("curated-tokenizers-tests/toy.model", None),
          ("sentencepiece-tests/test_model.model", None), ("sentencepiece-tests/test_ja_model.model", None)]


def special(*texts):
    return [AddedToken(text, normalized=False, special=True, lstrip=text == "<mask>") for text in texts]


def proto_of(path):
    proto = sentencepiece_model_pb2.ModelProto()
    with open(path, "rb") as f:
        proto.ParseFromString(f.read())
    return proto


def words(t):
    t.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(**SPACE)])
    t.decoder = decoders.Metaspace(**SPACE)


def fairseq(proto, before, first):
    vocab = before + [(p.piece, p.score) for p in proto.pieces[first:]] + [("<mask>", 0.0)]
    t = Tokenizer(models.Unigram(vocab, 3))
    t.normalizer = normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)
    words(t)
    t.add_tokens(special("<s>", "</s>", "<unk>", "<pad>", "<mask>"))
    t.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[(text, t.token_to_id(text)) for text in ("<s>", "</s>")])
    return t


def xlnet(proto):
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], proto.trainer_spec.unk_id))
    t.normalizer = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
        normalizers.Precompiled(proto.normalizer_spec.precompiled_charsmap)])
    words(t)
    t.add_tokens(special("<s>", "</s>", "<unk>", "<sep>", "<pad>", "<cls>", "<mask>", "<eop>", "<eod>"))
    t.post_processor = processors.TemplateProcessing(
        single="$A:0 <sep>:0 <cls>:2", pair="$A:0 <sep>:0 $B:1 <sep>:1 <cls>:2",
        special_tokens=[(text, t.token_to_id(text)) for text in ("<sep>", "<cls>")])
    return t


def plain(proto):
    """As the reference library converts a model of which it knows no class."""
    spec, trainer = proto.normalizer_spec, proto.trainer_spec
    t = Tokenizer(models.Unigram([(p.piece, p.score) for p in proto.pieces], trainer.unk_id, trainer.byte_fallback))
    cuts = []
    steps = [normalizers.Precompiled(spec.precompiled_charsmap)] if spec.precompiled_charsmap else []
    if spec.remove_extra_whitespaces:
        steps += [normalizers.Replace(Regex(r"\A +| +\z"), ""), normalizers.Replace(Regex(" {2,}"), " ")]
    if spec.escape_whitespaces:
        steps.append(normalizers.Replace(" ", "▁"))
    if spec.add_dummy_prefix:
        steps.append(normalizers.Replace(Regex(r"\A▁"), "▁▁"))
        cuts.append(pre_tokenizers.Metaspace(split=False, **SPACE))
    own = sorted((p.piece for p in proto.pieces if p.type == 4), key=len, reverse=True)
    if own:
        cuts.append(pre_tokenizers.Split(Regex("|".join(map(re.escape, own))), behavior="isolated"))
    t.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    t.normalizer = normalizers.Sequence(steps)
    back = [decoders.Replace("▁", " ")] + ([decoders.ByteFallback()] if trainer.byte_fallback else [])
    if spec.add_dummy_prefix or trainer.byte_fallback:
        back.append(decoders.Fuse())
    if spec.add_dummy_prefix:
        back.append(decoders.Strip(content=" ", left=1))
    t.decoder = decoders.Sequence(back)
    return t


def reference(path, kind):
    """The tokenizer of a tokenizer.json or a SentencePiece model."""
    if path.endswith(".json"):
        return Tokenizer.from_file(path)
    proto = proto_of(path)
    if kind == "XLMRobertaTokenizer":
        return fairseq(proto, [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)], 3)
    if kind == "CamembertTokenizer":
        return fairseq(proto, [("<s>NOTUSED", 0.0), ("<pad>", 0.0), ("</s>NOTUSED", 0.0), ("<unk>", 0.0),
                               ("<unk>NOTUSED", -100.0)], 1)
    return xlnet(proto) if kind == "XLNetTokenizer" else plain(proto)


def byte_offsets(text):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return at


def encode(t, a, b=None, limit=None):
    """Ids, types, offsets in bytes, how many tokens were dropped, and the text of the ids in bytes."""
    t.no_truncation()
    whole = e = t.encode(a, b)
    if limit is not None:
        t.enable_truncation(limit)
        e = t.encode(a, b)
    at, offsets = [byte_offsets(a), byte_offsets(b or "")], []
    for (begin, end), sequence in zip(e.offsets, e.sequence_ids):
        offsets.append((0, 0) if sequence is None else (at[sequence][begin], at[sequence][end]))
    return e.ids, e.type_ids, offsets, len(whole.ids) - len(e.ids), t.decode(e.ids).encode()


# ---- ../shared -----------------------------------------------------------------------------------------------------------------

# Kind, pattern, step: every so many texts of a file.
SOURCES = [("squad", "xquad/*.json", 11), ("squad", "tydiqa_goldp/*.json", 23), ("lines", "stsb_multi_mt/*.csv", 29),
           ("lines", "panx/*.tsv", 997), ("lines", "stsb/*.csv", 61)]


def texts_of(kind, path, step=1):
    with open(os.path.join(SHARED, path), encoding="utf-8", newline="\n") as f:
        data = f.read()
    if kind == "lines":
        texts = data.split("\n")
    else:
        paragraphs = [p for article in json.loads(data)["data"] for p in article["paragraphs"]]
        texts = [text for p in paragraphs for text in [p["context"]] + [qa["question"] for qa in p["qas"]]]
    return texts[::step]


def sources():
    """Every file as (kind, path below ../shared/data, step)."""
    out = []
    for kind, pattern, step in SOURCES:
        for path in sorted(glob.glob(os.path.join(SHARED, pattern))):
            out.append((kind, os.path.relpath(path, SHARED), step))
    return out
