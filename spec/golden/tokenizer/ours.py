"""Perigee's tokenizer in another process, behind two pipes (worker.lua), and tokenizers for the same texts."""
import os
import shutil
import struct
import subprocess
import tempfile

from reference import HERE, TOP, characters


class Ours:
    """Perigee's tokenizer of a folder. files: contents by name, such as {"tokenizer.json": bytes}."""

    def __init__(self, files):
        self.folder = tempfile.mkdtemp()
        for name, data in files.items():
            with open(os.path.join(self.folder, name), "wb") as f:
                f.write(data)
        self.p = subprocess.Popen(["luajit", os.path.join(HERE, "worker.lua"), self.folder], cwd=TOP, stdin=subprocess.PIPE,
                                  stdout=subprocess.PIPE)

    def close(self):
        self.p.stdin.close()
        self.p.wait()
        shutil.rmtree(self.folder)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def read(self, count):
        data = self.p.stdout.read(count)
        assert len(data) == count, "the process of Perigee's tokenizer ended"
        return data

    def ask(self, line, data):
        """Sends a request. Returns a dict, or the message of an error."""
        self.p.stdin.write(line.encode() + b"\n" + data)
        self.p.stdin.flush()
        n, dropped, size = struct.unpack("<3i", self.read(12))
        if n < 0:
            return self.read(size).decode(errors="replace")
        w = struct.unpack(f"<{8 * n}i", self.read(32 * n))
        text = self.read(size)
        whole = self.read(struct.unpack("<i", self.read(4))[0])
        pairs = [list(zip(w[i:i + 2 * n:2], w[i + 1:i + 2 * n:2])) for i in (2 * n, 4 * n)]
        return dict(ids=list(w[:n]), types=list(w[n:2 * n]), bytes=pairs[0], characters=pairs[1], sequences=list(w[6 * n:7 * n]),
                    words=list(w[7 * n:]), dropped=dropped, text=text.decode(errors="replace"),
                    whole=whole.decode(errors="replace"))

    def encode(self, a, b=None, limit=None, bare=False, truncate=0):
        """Encodes a text or a pair, given as bytes. bare: without special tokens. truncate: an index into STRATEGIES."""
        b_size = -1 if b is None else len(b)
        return self.ask(f"all {len(a)} {b_size} {-1 if limit is None else limit} {int(bare)} {truncate}", a + (b or b""))

    def encode_words(self, words, limit=None, bare=False):
        sizes = " ".join(str(len(w)) for w in words)
        return self.ask(f"words {-1 if limit is None else limit} {int(bare)} {sizes}", b"".join(words))


def sizes_of(data):
    """The text that tokenizers is given for these bytes, and the byte at which each character begins."""
    pairs, at = characters(data), [0]
    for _, size in pairs:
        at.append(at[-1] + size)
    return "".join(c for c, _ in pairs), at


STRATEGIES = ["longest_first", "only_first", "only_second"]


def reference_of(t, a, b=None, limit=None, bare=False, truncate=0):
    """The result of Ours.encode by tokenizers; a may be a list of words. None if tokenizers fails."""
    in_words = isinstance(a, list)
    first = [sizes_of(w) for w in a] if in_words else [sizes_of(a)]
    second = [sizes_of(b)] if b is not None else []
    args = dict(add_special_tokens=not bare, is_pretokenized=in_words)
    texts = [[s for s, _ in first] if in_words else first[0][0]] + [s for s, _ in second]
    try:
        t.no_truncation()
        whole = e = t.encode(*texts, **args)
        if limit is not None:
            t.enable_truncation(limit, strategy=STRATEGIES[truncate])
            e = t.encode(*texts, **args)
    except BaseException as error:  # a truncation that tokenizers refuses, or a panic, which is not an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        return f"{type(error).__name__}: {error}"
    finally:
        t.no_truncation()
    in_bytes, in_characters, sequences, words = [], [], [], []
    for (begin, end), sequence, word, special in zip(e.offsets, e.sequence_ids, e.word_ids, e.special_tokens_mask):
        around = special == 1
        sequence = None if around else 0 if sequence is None and b is None else sequence
        in_characters.append((0, 0) if around else (begin, end))
        at = None if around else (first[word] if in_words else (first + second)[sequence or 0])[1]
        in_bytes.append((0, 0) if around else (at[begin], at[end]))
        sequences.append(0 if around else (sequence or 0) + 1)
        words.append(0 if around or word is None else word + 1)
    return dict(ids=e.ids, types=e.type_ids, bytes=in_bytes, characters=in_characters, sequences=sequences, words=words,
                dropped=len(whole.ids) - len(e.ids), text=t.decode(e.ids), whole=t.decode(e.ids, skip_special_tokens=False))


def differences(want, got):
    """The keys that differ; errors are equal."""
    if isinstance(want, str) or isinstance(got, str):
        return [] if isinstance(want, str) and isinstance(got, str) else ["error"]
    return [key for key in want if want[key] != got[key]]
