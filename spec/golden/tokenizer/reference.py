"""BERT's WordPiece by tokenizers, for the other scripts here. Perigee's tokenizer is in ours.py.

An encoding is (ids, types, offsets in bytes, number of dropped tokens)."""
import os

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, "..", "..", "..")
SHARED = os.path.join(TOP, "..", "shared", "data")
SPECIAL = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"]


def vocabulary(name):
    """The list of pieces of a shared vocabulary: one a line, without trailing white space, as tokenizers reads it."""
    with open(os.path.join(SHARED, "tokenizers", name, "vocab.txt"), encoding="utf-8", newline="\n") as f:
        return [line.rstrip() for line in f.read().removesuffix("\n").split("\n")]


def normalizer(o):
    return normalizers.BertNormalizer(o["clean_text"], o["handle_chinese_chars"], o["strip_accents"], o["lowercase"])


class Reference:
    """WordPiece of tokenizers. vocab: ids by pieces. added: a list of dicts of AddedToken's arguments."""

    def __init__(self, vocab, options, added):
        o = options
        t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=o["max_word_chars"],
                                       continuing_subword_prefix=o["prefix"]))
        t.normalizer = normalizer(o)
        t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        t.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
        t.decoder = decoders.WordPiece(o["prefix"])
        t.add_tokens([AddedToken(**a) for a in added])
        self.t = t

    def ids(self, added):
        return [self.t.token_to_id(a["content"]) for a in added]

    def encode(self, a, b=None, max_tokens=None):
        """Encodes a text or a pair; a text is a list of (character, number of bytes), see characters()."""
        texts = ["".join(c for c, _ in a)] + ([] if b is None else ["".join(c for c, _ in b)])
        starts = []
        for text in [a] if b is None else [a, b]:
            at = [0]
            for _, size in text:
                at.append(at[-1] + size)
            starts.append(at)
        self.t.no_truncation()
        whole = e = self.t.encode(*texts)
        if max_tokens is not None:
            self.t.enable_truncation(max_tokens)
            e = self.t.encode(*texts)
        offsets = []
        for (begin, end), sequence, special in zip(e.offsets, e.sequence_ids, e.special_tokens_mask):
            at = starts[sequence or 0]
            offsets.append((0, 0) if special else (at[begin], at[end]))
        assert e.attention_mask == [1] * len(e.ids)
        return e.ids, e.type_ids, offsets, len(whole.ids) - len(e.ids)


def characters(data):
    """Bytes as a list of (character, number of bytes). A byte that is not part of UTF-8 becomes U+FFFD."""
    out, at = [], 0
    while at < len(data):
        for size in (1, 2, 3, 4):
            try:
                out.append((data[at:at + size].decode("utf-8"), size))
                break
            except UnicodeDecodeError:
                continue
        else:
            out.append(("\ufffd", 1))
            size = 1
        at += size
    return out
