#!/usr/bin/env python3
"""Makes spec/golden/tasks: small checkpoints with heads (random weights, fixed seeds), and the answers of transformers' pipelines.

  make_tasks.py        tasks/NAME/ and tasks/NAME/answers.json for nli, cross, qa, ner, mlm, sentence (WordPiece), roberta-qa,
                       roberta-ner, roberta-mlm (byte-level BPE), xlmr-qa, xlmr-ner, xlmr-mlm (Unigram)

pip install torch==2.15.0 transformers==5.24.0 sentence-transformers==6.2.0 tokenizers safetensors numpy. answers.json is a list of
{ "given": the task's input, "options": with Perigee's names, "answer": in the library's form, "from": what gave the answer }.

transformers 5 has no question-answering pipeline any more. `answer_question` below does what the documentation of version 4
describes: windows by the tokenizer's own stride, a softmax over the context's tokens and [CLS] in each window, the product of the
two probabilities, spans of a maximum number of tokens, word boundaries on request, and the minimum product for [CLS] as "no answer".
A context without words has the answer "" with the score 0. Equal spans of the context count once, with the maximum score. A word
that a window cuts is used as a whole.
"""
import json, os, shutil, sys, warnings

import make_models as make
import numpy as np
import torch
from safetensors.torch import save_file
from sentence_transformers import CrossEncoder, SentenceTransformer
import transformers
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, decoders, processors, trainers
from transformers import (AutoModelForSequenceClassification, AutoTokenizer, BertConfig, BertForMaskedLM, BertForQuestionAnswering, BertForSequenceClassification,
                          BertForTokenClassification, BertModel, PreTrainedTokenizerFast, pipeline)

warnings.filterwarnings("ignore")
HERE = os.path.dirname(os.path.abspath(__file__)) + "/tasks"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"] + make.WORDS
LIMIT = 40

TEXTS = ["how many people can see the water?", "Each of them said: it was Hötter than the other one! 🙂 And they look for it all day.",
         "unlikely things make people look unsound, day by day", "", "no",
         "the first word is not the last one, and some people will look at the water all day long. " * 3]
LONG = TEXTS[-1]


def checkpoint(name, seed, cls, labels=None, gain=4.0, extra=None):
    """Writes a checkpoint. Returns its folder and the model of transformers."""
    folder = f"{HERE}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    names = {i: n for i, n in enumerate(labels or ["LABEL_0", "LABEL_1"])}
    config = BertConfig(vocab_size=len(VOCABULARY), hidden_size=32, num_attention_heads=4, intermediate_size=48, num_hidden_layers=2,
                        max_position_embeddings=64, id2label=names, label2id={n: i for i, n in names.items()}, attn_implementation="eager")
    model = cls(config).eval() if cls is not BertModel else cls(config, add_pooling_layer=False).eval()
    rng = np.random.default_rng(seed)
    state = {n: w * (gain if n.startswith(("classifier", "qa_outputs")) else 1) for n, w in make.random_weights(rng, model, {}).items()}
    if cls is BertForMaskedLM:
        del state["cls.predictions.decoder.weight"], state["cls.predictions.decoder.bias"]
    state = {n: w.to(torch.float16) for n, w in state.items()}
    model.load_state_dict({n: w.float() for n, w in state.items()}, strict=False)
    if cls is BertForMaskedLM:
        model.tie_weights()
    save_file(state, f"{folder}/model.safetensors", metadata={"format": "pt"})
    kept = {k: v for k, v in config.to_dict().items() if k in (
        "vocab_size hidden_size num_attention_heads intermediate_size num_hidden_layers max_position_embeddings hidden_act "
        "type_vocab_size layer_norm_eps model_type pad_token_id tie_word_embeddings").split()}
    kept.update(architectures=[cls.__name__], **(extra or {}))
    if labels:
        kept.update(id2label={str(k): v for k, v in names.items()}, label2id={v: k for k, v in names.items()})
    make.write_json(f"{folder}/config.json", kept)
    with open(f"{folder}/vocab.txt", "w", encoding="utf-8", newline="\n") as f:
        f.write("".join(w + "\n" for w in VOCABULARY))
    make.write_json(f"{folder}/tokenizer_config.json", {"do_lower_case": True, "model_max_length": LIMIT, "tokenizer_class": "BertTokenizer"})
    return folder, model, AutoTokenizer.from_pretrained(folder)


def other_tokenizer(kind):
    """A small tokenizer in the form of RoBERTa's (trained on the texts) or XLM-R's (made of the texts' words and letters)."""
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    texts = TEXTS + [" ".join(w for w in make.WORDS if w.isalpha())] * 3
    if kind == "roberta":
        t = Tokenizer(models.BPE())
        t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
        t.train_from_iterator(texts, trainers.BpeTrainer(vocab_size=420, special_tokens=special, show_progress=False,
                                                         initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
        t.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), trim_offsets=True, add_prefix_space=False)
    else:
        words = ["▁" + w for w in make.WORDS if w.isalpha()] + [w[2:] for w in make.WORDS if w.startswith("##")]
        letters = sorted(set("".join(texts)) - {" "}) + ["▁"]
        pieces = list(dict.fromkeys(words + letters))
        t = Tokenizer(models.Unigram([(s, 0.0) for s in special] + [(p, -4 - 0.02 * i - (6 if p in letters else 0)) for i, p in enumerate(pieces)],
                                     unk_id=3))
        t.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Replace("  ", " ")])
        t.pre_tokenizer, t.decoder = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]), decoders.Metaspace()
        t.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
                                                         special_tokens=[("<s>", 0), ("</s>", 2)])
    t.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    return PreTrainedTokenizerFast(tokenizer_object=t, bos_token="<s>", cls_token="<s>", sep_token="</s>", eos_token="</s>", unk_token="<unk>",
                                   pad_token="<pad>", mask_token=AddedToken("<mask>", lstrip=True), model_max_length=LIMIT)


def other_checkpoint(kind, name, seed, end, labels=None, gain=4.0):
    """Like checkpoint, for RoBERTa or XLM-R."""
    folder = f"{HERE}/{name}"
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    tok = other_tokenizer(kind)
    names = {i: n for i, n in enumerate(labels or ["LABEL_0", "LABEL_1"])}
    config = getattr(transformers, {"roberta": "RobertaConfig", "xlmr": "XLMRobertaConfig"}[kind])(
        vocab_size=len(tok), hidden_size=32, num_attention_heads=4, intermediate_size=48, num_hidden_layers=1, max_position_embeddings=66,
        type_vocab_size=1, id2label=names, label2id={n: i for i, n in names.items()}, attn_implementation="eager")
    model = getattr(transformers, {"roberta": "Roberta", "xlmr": "XLMRoberta"}[kind] + end)(config).eval()
    rng = np.random.default_rng(seed)
    state = {n: w * (gain if n.startswith(("classifier", "qa_outputs")) else 1) for n, w in make.random_weights(rng, model, {}).items()}
    for tied in ("lm_head.decoder.weight", "lm_head.decoder.bias"):
        state.pop(tied, None)
    state = {n: w.to(torch.float16) for n, w in state.items()}
    model.load_state_dict({n: w.float() for n, w in state.items()}, strict=False)
    model.tie_weights()
    save_file(state, f"{folder}/model.safetensors", metadata={"format": "pt"})
    kept = {k: v for k, v in config.to_dict().items() if k in (
        "vocab_size hidden_size num_attention_heads intermediate_size num_hidden_layers max_position_embeddings hidden_act "
        "type_vocab_size layer_norm_eps model_type pad_token_id tie_word_embeddings").split()}
    kept.update(architectures=[type(model).__name__], id2label={str(k): v for k, v in names.items()}, label2id=config.label2id)
    make.write_json(f"{folder}/config.json", kept)
    tok.save_pretrained(folder)
    return folder, model, tok


def plain(value):
    """The value with numpy's numbers as Python's, rounded to nine digits, which is enough for float32."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (np.ndarray, torch.Tensor)):
        return plain(value.tolist())
    if isinstance(value, (float, np.floating)):
        return float(f"{float(value):.9g}")
    return int(value) if isinstance(value, np.integer) else value


def write(folder, rows):
    make.write_json(f"{folder}/answers.json", [plain(dict(zip(("given", "options", "answer", "from"), r))) for r in rows])
    print(f"{folder}: {len(rows)} answers, {sum(os.path.getsize(f'{folder}/{f}') for f in os.listdir(folder) if os.path.isfile(f'{folder}/{f}'))} bytes")


def nli():
    folder, model, tok = checkpoint("nli", 11, BertForSequenceClassification, ["entailment", "neutral", "contradiction"])
    classify = pipeline("text-classification", model=model, tokenizer=tok)
    zero = pipeline("zero-shot-classification", model=model, tokenizer=tok)
    rows = []
    for apply in (None, "softmax", "sigmoid", "none"):
        for text in TEXTS:
            out = classify(text, top_k=None, function_to_apply=apply, truncation=True)
            rows.append((text, {"apply": apply} if apply else {}, out, "text-classification"))
    for text in TEXTS:
        out = classify(text, top_k=2, truncation=True)
        rows.append((text, {"top_k": 2}, out, "text-classification, top_k"))
    for a, b in zip(TEXTS, TEXTS[1:]):
        if not b:  # the pipeline takes a pair with an empty text for no pair
            continue
        rows.append(([a, b], {}, classify({"text": a, "text_pair": b}, top_k=None, truncation=True), "text-classification"))
    labels = ["water", "people", "the long day"]
    for text in TEXTS:
        if text:
            for chosen, multi, template in ((labels, False, None), (labels, True, None), (labels[:1], False, None), (labels, False, "it is {} and {}!")):
                template = template or "This example is {}."
                out = zero(text, chosen, multi_label=multi, hypothesis_template=template.replace("{} and {}", "{0} and {0}"))
                rows.append((text, {"labels": chosen, "multi": multi, "template": template}, out, "zero-shot-classification"))
    write(folder, rows)


def cross():
    folder, _, _ = checkpoint("cross", 12, BertForSequenceClassification, ["relevance"], gain=2)
    rows = []
    for name, activation in ((None, None), ("identity", "torch.nn.modules.linear.Identity"), ("old", "torch.nn.modules.linear.Identity")):
        config = json.load(open(f"{folder}/config.json"))
        if activation:
            config.update({"sbert_ce_default_activation_function": activation} if name == "old" else {"sentence_transformers": {"activation_fn": activation}})
        copy = f"/tmp/perigee-cross-{os.getpid()}"
        shutil.copytree(folder, copy)
        make.write_json(f"{copy}/config.json", config)
        ranker = CrossEncoder(copy, device="cpu", max_length=LIMIT, model_kwargs={"dtype": torch.float32})
        for query in ("how many people?", "the water", LONG):
            for best in (None, 2):
                out = ranker.rank(query, TEXTS, top_k=best)
                rows.append(({"query": query, "documents": TEXTS, "config": {k: config[k] for k in config if "sentence" in k or "sbert" in k}},
                             {"top_k": best} if best else {}, [{"index": r["corpus_id"] + 1, "score": r["score"]} for r in out], "CrossEncoder.rank"))
        shutil.rmtree(copy)
    for problem in (None, "regression", "single_label_classification"):
        model = AutoModelForSequenceClassification.from_pretrained(folder, problem_type=problem, dtype=torch.float32).eval()
        score = pipeline("text-classification", model=model, tokenizer=AutoTokenizer.from_pretrained(folder))
        for text in TEXTS:
            rows.append(({"text": text, "config": {"problem_type": problem}}, {}, score(text, truncation=True), "text-classification"))
    write(folder, rows)


def answer_question(model, tok, question, context, top_k, tokens, stride, longest, no_answer, whole_words):
    enc = tok(question, context, truncation="only_second", max_length=tokens, stride=stride, return_overflowing_tokens=True,
              return_offsets_mapping=True, padding=True)
    whole, (found, null) = tok([question], [context], truncation=False), ({}, None)
    for i in range(len(enc["input_ids"])):
        given = {k: torch.tensor([enc[k][i]]) for k in ("input_ids", "attention_mask", "token_type_ids") if k in enc and (
            k != "token_type_ids" or model.config.type_vocab_size > 1)}
        with torch.no_grad():
            out = model(**given)
        allowed = np.array([s == 1 for s in enc.sequence_ids(i)])
        counted = allowed.copy()
        counted[0] = True
        p = []
        for logits in (out.start_logits[0].numpy(), out.end_logits[0].numpy()):
            e = np.exp(np.where(counted, logits, -10000.0) - logits[counted].max())
            p.append(e / e.sum())
        product = float(p[0][0] * p[1][0])
        null = product if null is None else min(null, product)
        for s in np.nonzero(allowed)[0]:
            for e in range(s, min(s + longest, len(allowed))):
                if allowed[e]:
                    begin, end = enc["offset_mapping"][i][s][0], enc["offset_mapping"][i][e][1]
                    if whole_words:
                        begin = whole.word_to_chars(0, enc.token_to_word(i, int(s)), 1).start
                        end = whole.word_to_chars(0, enc.token_to_word(i, int(e)), 1).end
                    score = float(p[0][s] * p[1][e])
                    found[begin, end] = max(found.get((begin, end), 0), score)
    answers = [{"score": v, "start": k[0], "end": k[1], "answer": context[k[0]:k[1]]} for k, v in found.items()]
    if no_answer or not answers:
        answers.append({"score": null if context.strip() else 0.0, "start": 0, "end": 0, "answer": ""})
    return sorted(answers, key=lambda a: -a["score"])[:top_k]


def qa(made=None):
    folder, model, tok = made or checkpoint("qa", 13, BertForQuestionAnswering)
    rows = []
    for question in ("how many people?", "what?"):
        for context in TEXTS:
            for options in ({}, {"top_k": 3}, {"top_k": 4, "no_answer": True}, {"tokens": 34 if made else 20, "stride": 6, "top_k": 3}, {"longest": 2, "top_k": 2},
                            {"whole_words": True, "top_k": 3, "tokens": 36 if made else 24, "stride": 5}):
                o = {"top_k": 1, "tokens": LIMIT, "stride": 10, "longest": 30, "no_answer": False, "whole_words": False, **options}
                out = answer_question(model, tok, question, context, **o)
                rows.append(({"question": question, "context": context}, {**options, "stride": o["stride"]}, out, "question answering, version 4"))
    write(folder, rows)


TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC"]


def ner(made=None):
    folder, model, tok = made or checkpoint("ner", 14, BertForTokenClassification, TAGS, gain=3)
    tagger, rows = pipeline("token-classification", model=model, tokenizer=tok), []
    for text in TEXTS + ["the🙂 people🙂look at🙂the water day☃long un☃able"]:
        for how in ("none", "simple", "first", "average", "max"):
            rows.append((text, {"aggregation": how}, tagger(text, aggregation_strategy=how), "token-classification"))
        for how, ignored in (("simple", []), ("none", ["O", "B-PER"]), ("first", ["PER"])):
            rows.append((text, {"aggregation": how, "ignore_labels": ignored},
                         tagger(text, aggregation_strategy=how, ignore_labels=ignored), "token-classification"))
    for text in TEXTS:
        words = text.split()[:12]
        if words:
            enc = tok(words, is_split_into_words=True, truncation=True, return_tensors="pt")
            with torch.no_grad():
                p = model(**enc).logits[0].softmax(-1).numpy()
            tags, ids = [], enc.word_ids(0)
            for w in range(len(words)):
                first = ids.index(w) if w in ids else None
                tags.append({"entity": model.config.id2label[int(p[first].argmax())], "score": p[first].max()} if first else {"entity": "O", "score": 0})
            rows.append(({"words": words}, {}, tags, "the first piece of a word"))
    write(folder, rows)


def mlm(made=None):
    folder, model, tok = made or checkpoint("mlm", 15, BertForMaskedLM)
    filler, rows = pipeline("fill-mask", model=model, tokenizer=tok), []
    for text in ("how many [MASK] can see the water?", "un[MASK] things [MASK] people, day by [MASK].", "[MASK]", "Hötter 🙂 [MASK]!"):
        text = text.replace("[MASK]", tok.mask_token)
        for options in ({}, {"top_k": 2}, {"top_k": 3, "targets": ["water", "people", "the", "day"]}):
            if "targets" in options and made:
                options = {"top_k": 3, "targets": [tok.convert_ids_to_tokens(i) for i in (20, 40, 60, 80)]}
            out = filler(text, top_k=options.get("top_k", 5), **({"targets": options["targets"]} if "targets" in options else {}))
            rows.append((text, options, out if isinstance(out[0], list) else [out], "fill-mask"))
    write(folder, rows)


def sentence():
    folder, _, _ = checkpoint("sentence", 16, BertModel)
    make.write_json(f"{folder}/modules.json", [
        {"idx": i, "name": str(i), "path": p, "type": f"sentence_transformers.models.{t}"}
        for i, (p, t) in enumerate([("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")])])
    make.write_json(f"{folder}/config_sentence_transformers.json", {
        "prompts": {"query": "how many people: ", "document": "", "day": "Each dáy, "}, "default_prompt_name": "day"})
    make.write_json(f"{folder}/sentence_bert_config.json", {"max_seq_length": LIMIT, "do_lower_case": False})
    os.makedirs(f"{folder}/1_Pooling")
    rows, some = [], [TEXTS[0], TEXTS[1], TEXTS[3], LONG]
    for mode in ("max", "first", "mean"):
        for include in (False, True):
            make.write_json(f"{folder}/1_Pooling/config.json", {"word_embedding_dimension": 32, "include_prompt": include,
                            **{k: m == mode for m, k in make.POOLING.items()}})
            model = SentenceTransformer(folder, device="cpu", model_kwargs={"dtype": torch.float32})
            for options, given in (({}, {}), ({"prompt": "query"}, {"prompt_name": "query"}), ({"prompt": "document"}, {"prompt_name": "document"}),
                                   ({"prompt": "some "}, {"prompt": "some "})):
                out = model.encode(some, **given)
                rows.append(({"mode": mode, "include_prompt": include, "texts": some}, options, out, "SentenceTransformer.encode"))
        out = model.encode(some, truncate_dim=7, normalize_embeddings=True)
        rows.append(({"mode": mode, "include_prompt": True, "texts": some}, {"dimensions": 7}, out, "SentenceTransformer.encode"))
    write(folder, rows)


def others():
    for seed, kind in (21, "roberta"), (31, "xlmr"):
        qa(other_checkpoint(kind, f"{kind}-qa", seed, "ForQuestionAnswering"))
        ner(other_checkpoint(kind, f"{kind}-ner", seed + 1, "ForTokenClassification", TAGS, gain=3))
        mlm(other_checkpoint(kind, f"{kind}-mlm", seed + 2, "ForMaskedLM"))


if __name__ == "__main__":
    for f in [globals()[n] for n in sys.argv[1:]] or [nli, cross, qa, ner, mlm, sentence, others]:
        f()
