#!/usr/bin/env python3
"""Times Perigee beside the libraries that one would use instead, on random weights of real shapes.

  peers.py [ROW...] [--models DIR] [--peers a,b] [--modes static,dynamic] [--threads 1] [--rounds 7] [--cpu] [--isa NAME]
           [--json FILE]
  peers.py bert-base --lengths FILE [--sorted] --batch 32 ...
  peers.py minilm bert-base --mixed FILE,FILE ...

A ROW is NAME:BATCHxTOKENS, such as minilm:32x128; by default those of kernels/FIGURES.md. With --lengths, rows are names alone,
and one run is all texts of FILE (a number of tokens on each line) in batches, padded for the peers, packed for Perigee. --mixed
does that in batches of 1, 8 and 32, in the order of each file and sorted, and prints each one's best.

All take turns, so that whatever else the machine does hits all alike; printed is the least time of each in milliseconds.
Perigee is recipes/bench.lua --lockstep in a process of its own: it says itself how long a run took, and is not believed if that
is less than what is seen from here. --cpu counts CPU time in place of the clock's: for machines that others use, too. --modes
f32,static,dynamic has Perigee's own FP32 beside them, --peers , nobody else. --isa avx2, avxvnni or avx512vnni holds Perigee
and the peers to that; ONNX Runtime, which cannot be told, is left out. Every output is compared with PyTorch's in FP32: a
cosine below 0.98 is printed; below 0.5, what was timed is something else, and no best peer. Pin it: taskset -c 1. Checkpoints
and what the peers make of them are kept in --models (default build/peers/models).
"""
import argparse, copy, functools, gc, json, os, subprocess, sys, tempfile, time, warnings

for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)
os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="error", TOKENIZERS_PARALLELISM="false", NNCF_DISABLE_TELEMETRY="1")
warnings.filterwarnings("ignore")
import numpy as np

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROWS = "bert-large:1x128 bert-large:1x384 bert-large:8x128 distilbert:1x128 distilbert:16x384 minilm:1x32 minilm:32x128".split()

# ---- Checkpoints ---------------------------------------------------------------------------------------------------------


def random_model(name):
    import transformers as t
    bert = lambda **sizes: t.BertModel(t.BertConfig(**sizes), add_pooling_layer=False)
    return {
        "bert-large": lambda: bert(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096),
        "bert-base": bert,
        "minilm": lambda: bert(hidden_size=384, num_hidden_layers=6, num_attention_heads=12, intermediate_size=1536),
        "distilbert": lambda: t.DistilBertModel(t.DistilBertConfig()),
        "xlmr-base": lambda: t.XLMRobertaModel(t.XLMRobertaConfig(
            vocab_size=250002, max_position_embeddings=514, type_vocab_size=1, layer_norm_eps=1e-5), add_pooling_layer=False),
    }[name]().eval()


def checkpoint(models, name):
    """The folder of a random checkpoint, made the first time. Its tokenizer is there because CTranslate2 wants one."""
    import tokenizers, torch, transformers
    folder = os.path.join(models, name)
    if not os.path.exists(folder + "/tokenizer.json"):
        torch.manual_seed(0)
        model = random_model(name)
        model.save_pretrained(folder)
        words = {f"w{i}": i for i in range(model.config.vocab_size)}
        plain = tokenizers.Tokenizer(tokenizers.models.WordLevel(words, unk_token="w0"))
        special = dict.fromkeys((f"{kind}_token" for kind in "pad unk cls sep mask bos eos".split()), "w0")
        transformers.PreTrainedTokenizerFast(tokenizer_object=plain, **special).save_pretrained(folder)
    return folder


def onnx(folder):
    import torch
    path = folder + "/model.onnx"
    if not os.path.exists(path):
        class Hidden(torch.nn.Module):
            def __init__(self, model):
                super().__init__()
                self.model = model

            def forward(self, ids, mask):
                return self.model(input_ids=ids, attention_mask=mask)[0]

        ids, names = torch.ones((2, 16), dtype=torch.long), ["ids", "mask"]
        torch.onnx.export(Hidden(torch_model(folder)), (ids, ids), path, input_names=names, output_names=["y"], dynamo=False,
                          dynamic_axes={n: {0: "batch", 1: "tokens"} for n in names + ["y"]}, opset_version=17)
    return path


# ---- Peers ---------------------------------------------------------------------------------------------------------------
# Each is made from (folder, batches, threads), batches being a list of (ids, mask), int64 [B][S], and is a function from one of
# them to the last hidden states [B][S][H].


@functools.lru_cache(1)
def torch_model(folder):
    from transformers import AutoModel
    return AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()


def torch_runner(model):
    import torch

    def run(ids, mask):
        with torch.no_grad():
            return model(input_ids=torch.from_numpy(ids), attention_mask=torch.from_numpy(mask))[0].float().numpy()
    return run


def torch_fp32(folder, batches, threads):
    return torch_runner(torch_model(folder))


def torchao(config):
    def make(folder, batches, threads):
        import torch
        import torch._inductor.config as inductor
        from torchao.prototype.smoothquant import SmoothQuantConfig
        from torchao.quantization import granularity, quant_api, quantize_
        base = (quant_api.Int8StaticActivationInt8WeightConfig(granularity=[granularity.PerTensor(), granularity.PerRow()])
                if config == "static" else quant_api.Int8DynamicActivationInt8WeightConfig(version=2))
        inductor.freezing = inductor.cpp_wrapper = True
        model = copy.deepcopy(torch_model(folder))
        quantize_(model, SmoothQuantConfig(base_config=base, step="prepare", alpha=0.5))
        torch_runner(model)(*batches[0])
        quantize_(model, SmoothQuantConfig(base_config=base, step="convert", alpha=0.5))
        return torch_runner(torch.compile(model, dynamic=len({ids.shape for ids, _ in batches}) > 1))
    return make


def onnxruntime(folder, batches, threads):
    import onnxruntime as ort
    path = folder + "/int8.onnx"
    if not os.path.exists(path):
        from onnxruntime.quantization import QuantType, quantize_dynamic
        from onnxruntime.transformers import optimizer
        config = torch_model(folder).config
        fused = folder + "/fused.onnx"
        optimizer.optimize_model(onnx(folder), model_type="bert", hidden_size=config.hidden_size,
                                 num_heads=config.num_attention_heads).save_model_to_file(fused)
        quantize_dynamic(fused, path, per_channel=True, weight_type=QuantType.QInt8, extra_options={"DefaultTensorType": 1})
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda ids, mask: session.run(None, {"ids": ids, "mask": mask})[0]


def openvino(folder, batches, threads):
    import openvino as ov
    path = folder + "/int8.xml"
    if not os.path.exists(path):
        import nncf
        rng = np.random.default_rng(1)
        sample = [{"ids": rng.integers(1000, 20000, (1, 128)), "mask": np.ones((1, 128), np.int64)} for _ in range(4)]
        quantized = nncf.quantize(ov.Core().read_model(onnx(folder)), nncf.Dataset(sample), subset_size=len(sample),
                                  model_type=nncf.ModelType.TRANSFORMER)
        ov.save_model(quantized, path, compress_to_fp16=False)
    core = ov.Core()
    model, shapes = core.read_model(path), {ids.shape for ids, _ in batches}
    if len(shapes) == 1:
        model.reshape({name: list(*shapes) for name in ("ids", "mask")})
    request = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "PERFORMANCE_HINT": "LATENCY",
                                                "INFERENCE_PRECISION_HINT": "f32"}).create_infer_request()
    return lambda ids, mask: request.infer({"ids": ids, "mask": mask})[0]


def ctranslate2(folder, batches, threads):
    import ctranslate2 as ct
    path = folder + "/ct2"
    if not os.path.exists(path):
        ct.converters.TransformersConverter(folder).convert(path)
    encoder = ct.Encoder(path, device="cpu", compute_type="int8", intra_threads=threads, inter_threads=1)
    lists = {id(ids): [row[:n].tolist() for row, n in zip(ids, mask.sum(1))] for ids, mask in batches}
    return lambda ids, mask: encoder.forward_batch(lists[id(ids)]).last_hidden_state


PEERS = {"torch-fp32": torch_fp32, "torchao-static": torchao("static"), "torchao-dynamic": torchao("dynamic"),
         "onnxruntime-int8": onnxruntime, "openvino-int8": openvino, "ctranslate2-int8": ctranslate2}
NOT_HELD = "onnxruntime-int8"  # has no switch for the ISA

# ---- Perigee -------------------------------------------------------------------------------------------------------------


def lua(code):
    code = f"package.path = 'lua/?.lua;lua/?/init.lua;' .. package.path; {code}"
    return subprocess.run(["luajit", "-e", code], cwd=TOP, text=True, capture_output=True, check=True).stdout.strip()


class Perigee:
    def __init__(self, folder, mode, batches, args):
        self.cpu = args.cpu
        self.scratch = tempfile.TemporaryDirectory()
        self.path = self.scratch.name
        lengths = [int(n) for _, mask in batches for n in mask.sum(1)]
        np.concatenate([ids[mask == 1] for ids, mask in batches]).astype(np.int32).tofile(self.path + "/ids")
        np.savetxt(self.path + "/lengths", lengths, "%d")
        command = ["luajit", "recipes/bench.lua", os.path.abspath(folder), "--lockstep", "--activations", mode, "--ids",
                   self.path + "/ids", "--lengths", self.path + "/lengths", "--batch", str(len(batches[0][0])),
                   "--threads", str(args.threads)]
        self.process = subprocess.Popen(command, cwd=TOP, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.expect(self.process.stdout.readline(), "ready")

    def expect(self, got, answer):
        if got.strip() != answer:
            raise RuntimeError(f"recipes/bench.lua said {got!r}, expected {answer!r}")

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        return self.process.stdout.readline()

    def seconds(self):
        """Of a run: what it says itself, or of its CPU time."""
        if not self.cpu:
            return float(self.ask("go"))
        before = self.cpu_seconds()
        self.ask("go")
        return self.cpu_seconds() - before

    def cpu_seconds(self):
        tasks = f"/proc/{self.process.pid}/task"
        return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) * 1e-9

    def hidden(self):
        self.expect(self.ask(f"save {self.path}/hidden"), "saved")
        return np.fromfile(self.path + "/hidden", np.float32)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


# ---- Rows ----------------------------------------------------------------------------------------------------------------


def batches_of(row, args):
    """(name, what is run in words, list of (ids, mask))."""
    name, _, shape = row.partition(":")
    if args.lengths:
        lengths = [int(line) for line in open(args.lengths)]
        lengths = sorted(lengths) if args.sorted else lengths
        groups = [lengths[i:i + args.batch] for i in range(0, len(lengths), args.batch)]
        words = f"{os.path.basename(args.lengths)}{' sorted' if args.sorted else ''}, batch {args.batch}"
    else:
        batch, tokens = map(int, shape.split("x"))
        groups, words = [[tokens] * batch], shape
    rng = np.random.default_rng(0)
    masks = [(np.arange(max(g))[None] < np.array(g)[:, None]).astype(np.int64) for g in groups]
    # The padding id, 1 in XLM-R, stands nowhere else.
    return name, words, [(np.where(m == 1, rng.integers(1000, 20000, m.shape), name.startswith("xlmr") * 1), m) for m in masks]


def multiply_adds(folder, batches):
    c = torch_model(folder).config
    H, I, L = c.hidden_size, getattr(c, "intermediate_size", None) or c.hidden_dim, c.num_hidden_layers
    return L * sum(int(n) * (4 * H * H + 2 * H * I) + 2 * int(n) ** 2 * H for _, mask in batches for n in mask.sum(1))


def flat(hidden, batches):
    """The hidden states of all tokens that are no padding, in one vector."""
    return np.concatenate([np.asarray(h)[mask == 1].ravel() for h, (_, mask) in zip(hidden, batches)])


def cosine(a, b):
    a, b = a.astype(np.float64), b.astype(np.float64)
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def take_turns(runs, ours, args):
    """Seconds of each, by turns, as it says itself and as seen from here; and the INT8 peak. The first round warms up."""
    clock = time.process_time if args.cpu else time.perf_counter
    times, seen = {who: [] for who in runs}, {who: [] for who in runs}
    for _ in range(args.rounds + 1):
        for who in times:
            began = clock()
            own = runs[who]()
            seen[who].append(clock() - began)
            times[who].append(own if who in ours else seen[who][-1])
    return times, seen, args.peak()


def time_row(row, args):
    name, words, batches = batches_of(row, args)
    folder = checkpoint(args.models, name)
    reference = flat([torch_fp32(folder, batches, args.threads)(*b) for b in batches], batches)
    runs, likeness = {}, {}
    for peer in args.peers:
        try:
            run = PEERS[peer](folder, batches, args.threads)
            likeness[peer] = cosine(flat([run(*b) for b in batches], batches), reference)
            runs[peer] = lambda run=run: [run(*b) for b in batches]
        except Exception as e:
            print(f"{row}: {peer} is left out: {type(e).__name__}: {str(e)[:300]}", file=sys.stderr)
    ours = {"perigee-" + mode: Perigee(folder, mode, batches, args) for mode in args.modes}
    for who, perigee in ours.items():
        likeness[who], runs[who] = cosine(perigee.hidden(), reference), perigee.seconds
    times, seen, peak = take_turns(runs, ours, args)
    for who, perigee in ours.items():
        perigee.close()
        least, outside = min(times[who][1:]), min(seen[who][1:])
        if not args.cpu and outside - least > 0.02 * outside + 2e-4:
            raise RuntimeError(f"{who} says {least * 1e3:.3f} ms, seen from here it takes {outside * 1e3:.3f} ms")
    work = multiply_adds(folder, batches)
    result = {"row": f"{name} {words}", "ms": {who: min(t[1:]) * 1e3 for who, t in times.items()}, "cosine": likeness,
              "multiply_adds": work, "bound_ms": 2e3 * work / peak if peak else None}
    runs.clear()
    torch_model.cache_clear()
    gc.collect()
    return result


def geometric_mean(values):
    return float(np.exp(np.mean(np.log(values)))) if values else float("nan")


def print_table(results, args):
    ours = ["perigee-" + mode for mode in args.modes]
    gains = {who: [] for who in ours}

    def cell(r, who):
        if who not in r["ms"]:
            return "-"
        return f"{r['ms'][who]:.4g}" + ("" if r["cosine"][who] >= 0.98 else f" (cosine {r['cosine'][who]:.3f})")

    def line(*cells):
        print("| " + " | ".join(cells) + " |")

    line("", *args.peers, *ours, *(f"best peer / {m}" for m in args.modes), "bound", *(f"bound / {m}" for m in args.modes))
    print("|" + "---|" * (2 + len(args.peers) + 3 * len(ours)))
    for r in results:
        best = min((ms for who, ms in r["ms"].items() if who in PEERS and r["cosine"][who] >= 0.5), default=float("nan"))
        for who in ours:
            gains[who].append(best / r["ms"][who])
        bound = r["bound_ms"]
        line(r["row"], *(cell(r, who) for who in [*args.peers, *ours]),
             *(f"{gains[who][-1]:.2f}" if best == best else "-" for who in ours),
             f"{bound:.4g}" if bound else "-", *(f"{100 * bound / r['ms'][who]:.0f} %" if bound else "-" for who in ours))
    for who, list_ in gains.items() if args.peers else []:
        print(f"{who}: geometric mean of best peer / it {geometric_mean(list_):.2f}")


def mixed_rows(args):
    """Each row with each file: { name, file, results by (sorted, batch) }."""
    for name in args.rows:
        for path in args.mixed:
            results = {}
            for in_order in (True, False):
                for batch in (1, 8, 32):
                    own = argparse.Namespace(**{**vars(args), "lengths": path, "sorted": not in_order, "batch": batch})
                    results[in_order, batch] = time_row(name, own)
                    print(json.dumps(results[in_order, batch]), file=sys.stderr, flush=True)
            yield {"name": name, "file": os.path.basename(path), "results": results}


def print_mixed(rows, args):
    """The best of each over order and batch; and the best peer in the file's order in batches of 32."""
    ours = ["perigee-" + mode for mode in args.modes]
    print("| | " + " | ".join([*args.peers, *ours, *(f"best peer / {m}" for m in args.modes),
                               *(f"best peer, 32 in file order / {m}" for m in args.modes), "bound"]) + " |")
    print("|" + "---|" * (2 + len(args.peers) + 3 * len(ours)))
    for row in rows:
        cells, best = [], {}
        for who in [*args.peers, *ours]:
            known = [(r["ms"][who], key) for key, r in row["results"].items() if who in r["ms"] and r["cosine"][who] >= 0.5]
            if known:
                best[who], (in_order, batch) = min(known)
            cells.append(f"{best[who]:.4g} ({batch}{'' if in_order else ' sorted'})" if known else "-")
        peer = min((who for who in best if who in PEERS), key=best.get)
        in_order = row["results"][True, 32]["ms"][peer]
        bounds = [r["bound_ms"] for r in row["results"].values() if r["bound_ms"]]
        cells += [f"{best[peer] / best[who]:.2f}" for who in ours] + [f"{in_order / best[who]:.2f}" for who in ours]
        print(f"| {row['name']} {row['file']} | " + " | ".join(cells) + f" | {min(bounds):.4g} |" if bounds else " | - |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    comma = lambda text: [item for item in text.split(",") if item]
    p.add_argument("rows", nargs="*", default=ROWS)
    p.add_argument("--models", default=TOP + "/build/peers/models")
    p.add_argument("--peers", type=comma, default=list(PEERS))
    p.add_argument("--modes", type=comma, default=["static", "dynamic"])
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--cpu", action="store_true")
    p.add_argument("--isa", choices=["avx2", "avxvnni", "avx512vnni"])
    p.add_argument("--lengths")
    p.add_argument("--sorted", action="store_true")
    p.add_argument("--batch", type=int, default=1)
    p.add_argument("--mixed", type=comma)
    p.add_argument("--json")
    args = p.parse_args()
    for peer in args.peers:
        if peer not in PEERS:
            p.error(f"there is no peer {peer!r}, only {', '.join(PEERS)}")
    os.environ["OMP_NUM_THREADS"] = str(args.threads)
    import torch
    torch.set_num_threads(args.threads)
    if args.isa:
        args.peers = [peer for peer in args.peers if peer != NOT_HELD]
        onednn = {"avx2": "AVX2", "avxvnni": "AVX2_VNNI", "avx512vnni": "AVX512_CORE_VNNI"}[args.isa]
        wide = args.isa == "avx512vnni"
        os.environ.update(PERIGEE_ISA=args.isa, ONEDNN_MAX_CPU_ISA=onednn, CT2_FORCE_CPU_ISA="AVX512" if wide else "AVX2",
                          MKL_ENABLE_INSTRUCTIONS="AVX512" if wide else "AVX2", ATEN_CPU_CAPABILITY="avx512" if wide else "avx2")
        import torch._inductor.config
        torch._inductor.config.cpp.simdlen = 512 if wide else 256
    peak = f"require('perigee').threads({args.threads}) print(require('perigee.cpu').peaks().int8 or 0)"
    args.peak = lambda: float(lua(peak))
    results = []
    for row in args.rows if not args.mixed else []:
        results.append(time_row(row, args))
        print(json.dumps(results[-1]), file=sys.stderr, flush=True)
    mixed = list(mixed_rows(args)) if args.mixed else None
    cpu = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), "an unknown CPU")
    print(f"{cpu}, {args.threads} thread(s), CPUs {sorted(os.sched_getaffinity(0))}; ms{' of CPU time' if args.cpu else ''}, "
          f"the least of {args.rounds}\n")
    if mixed:
        print_mixed(mixed, args)
        results = [r for row in mixed for r in row["results"].values()]
    else:
        print_table(results, args)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(results, f, indent=1)


if __name__ == "__main__":
    main()
