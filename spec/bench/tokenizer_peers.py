"""Tokenizers beside the `tokenizers` package, one thread each, on texts of ../shared (make bench-tokenizers).

Both give ids, types and offsets, of one text after another; the package also in one batch (on one thread), and the faster of
the two counts. Seconds of processor time, the least of several rounds that take turns."""
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAYON_NUM_THREADS"] = "1"

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors  # noqa: E402

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SHARED = os.path.join(TOP, "..", "shared", "data")
ROUNDS = 5


def bert(folder, lowercase):
    with open(os.path.join(folder, "vocab.txt"), encoding="utf-8", newline="\n") as f:
        vocab = {line.rstrip(): i for i, line in enumerate(f)}
    t = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]", max_input_chars_per_word=100))
    t.normalizer = normalizers.BertNormalizer(lowercase=lowercase)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    t.post_processor = processors.BertProcessing(("[SEP]", vocab["[SEP]"]), ("[CLS]", vocab["[CLS]"]))
    t.add_special_tokens(["[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]"])
    return t


def roberta(folder):
    t = Tokenizer(models.BPE.from_file(os.path.join(folder, "vocab.json"), os.path.join(folder, "merges.txt")))
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    t.add_special_tokens(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return t


# Name, folder, the package's, tokenizer_config.json.
ROWS = [
    ("WordPiece", "bert-base-uncased", lambda folder: bert(folder, True), {"do_lower_case": True}),
    ("WordPiece", "bert-base-multilingual-cased", lambda folder: bert(folder, False), {"do_lower_case": False}),
    ("Unigram", "xlm-roberta-base", lambda folder: Tokenizer.from_file(os.path.join(folder, "tokenizer.json")), None),
    ("BPE", "roberta-base", roberta, {"tokenizer_class": "RobertaTokenizer"}),
]


def squad(path):
    with open(path, encoding="utf-8") as f:
        paragraphs = [p for article in json.load(f)["data"] for p in article["paragraphs"]]
    return [t for p in paragraphs for t in [p["context"]] + [qa["question"] for qa in p["qas"]]]


def texts():
    """Lists of texts by name."""
    with open(os.path.join(SHARED, "stsb", "sts-test.csv"), encoding="utf-8") as f:
        out = {"STS-B": [text for line in f for text in line.rstrip("\n").split("\t")[5:7]]}
    everything = []
    for path in sorted(glob.glob(os.path.join(SHARED, "xquad", "*.json"))):
        everything += squad(path)
        if path.endswith(("en.json", "zh.json")):
            out["XQuAD " + path[-7:-5]] = squad(path)
    out["XQuAD, all"] = everything
    return {name: [text.replace("\n", " ") for text in list] for name, list in out.items()}


def timed(work):
    began = time.process_time()
    result = work()
    return time.process_time() - began, result


def main():
    if not os.path.isdir(SHARED):
        sys.exit("../shared/data is not here")
    sets, scratch = texts(), tempfile.mkdtemp()
    paths = {}
    for name, list in sets.items():
        paths[name] = os.path.join(scratch, name)
        with open(paths[name], "w", encoding="utf-8", newline="\n") as f:
            f.write("".join(text + "\n" for text in list))
    print(f"{'':40}{'package':>12}{'ours':>12}{'times':>8}{'MB/s':>8}")
    for kind, folder, make, config in ROWS:
        where = os.path.join(SHARED, "tokenizers", folder)
        if config is not None:  # beside the vocabulary, which has none there
            for name in os.listdir(where):
                link = os.path.join(scratch, folder, name)
                os.makedirs(os.path.dirname(link), exist_ok=True)
                os.symlink(os.path.abspath(os.path.join(where, name)), link)
            ours = os.path.join(scratch, folder)
            with open(os.path.join(ours, "tokenizer_config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
        else:
            ours = os.path.abspath(where)
        loading, t = timed(lambda: make(where))
        worker = subprocess.Popen(["luajit", "spec/bench/tokenizers.lua", ours], cwd=TOP, text=True,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        load, image = map(float, worker.stdout.readline().split())
        print(f"{kind + ' ' + folder + ', load':40}{loading * 1e3:9.1f} ms{load * 1e3:9.1f} ms{loading / load:8.1f}"
              f"   (from an image {image * 1e3:.3f} ms)")
        for name, list in sets.items():
            best = [1e9, 1e9]
            for _ in range(ROUNDS):
                single, counts = timed(lambda: sum(len(t.encode(text).ids) for text in list))
                batch, _ = timed(lambda: t.encode_batch(list))
                worker.stdin.write(paths[name] + "\n")
                worker.stdin.flush()
                seconds, tokens = worker.stdout.readline().split()
                assert int(tokens) == counts, (tokens, counts)
                best = [min(best[0], single, batch), min(best[1], float(seconds))]
            size = sum(len(text.encode()) for text in list)
            print(f"{'  ' + name:40}{best[0] * 1e3:9.1f} ms{best[1] * 1e3:9.1f} ms{best[0] / best[1]:8.1f}"
                  f"{size / best[1] / 1e6:8.1f}", flush=True)
        worker.stdin.close()
        worker.wait()


if __name__ == "__main__":
    main()
