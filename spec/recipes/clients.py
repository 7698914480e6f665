"""Asks a running server of recipes/serve.lua with clients from PyPI, unchanged: `make serve-clients`.

    clients.py URL MODEL RERANKER      names of models that the server has: an embedder and a reranker

Each client's vectors are compared with those of a plain request to /embed.
"""

import json
import math
import sys
import urllib.request

import cohere
import openai
from haystack.components.embedders import OpenAITextEmbedder
from haystack.utils import Secret
from huggingface_hub import InferenceClient
from langchain_huggingface import HuggingFaceEndpointEmbeddings
from langchain_openai import OpenAIEmbeddings
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference

URL, MODEL, RERANKER = sys.argv[1:]
TEXTS = ["a text", "another, longer text"]


def plain(path, body):
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


WANT = plain("/embed", {"inputs": TEXTS})
checks = []


def check(name, vectors, want=WANT):
    """Floats travel as nine digits or as base64: equal to the last bit of a float."""
    same = len(vectors) == len(want) and all(
        len(a) == len(b) and all(math.isclose(x, y, rel_tol=1e-6, abs_tol=1e-8) for x, y in zip(a, b, strict=True))
        for a, b in zip(vectors, want, strict=True)
    )
    checks.append(same)
    print("%-60s %s" % (name, "ok" if same else "DIFFERS"))


client = openai.OpenAI(base_url=URL + "/v1", api_key="none")
check("openai", [d.embedding for d in client.embeddings.create(input=TEXTS, model=MODEL).data])
floats = client.embeddings.create(input=TEXTS, model=MODEL, encoding_format="float")
check("openai, floats", [d.embedding for d in floats.data])
check("openai, models", [[float(MODEL in [m.id for m in client.models.list().data])]], [[1.0]])

hub = InferenceClient(URL)
check("huggingface_hub, feature_extraction", hub.feature_extraction("a text").tolist(), WANT[:1])

check("langchain_openai", OpenAIEmbeddings(
    base_url=URL + "/v1", api_key="none", model=MODEL, check_embedding_ctx_length=False).embed_documents(TEXTS))
endpoint = HuggingFaceEndpointEmbeddings(model="any/name", huggingfacehub_api_token="none")
endpoint.client = hub  # the class has no field for the address of a server
check("langchain_huggingface", endpoint.embed_documents(TEXTS))

check("llama_index, text_embeddings_inference", TextEmbeddingsInference(
    model_name=MODEL, base_url=URL).get_text_embedding_batch(TEXTS))
check("llama_index, openai_like", OpenAILikeEmbedding(
    model_name=MODEL, api_base=URL + "/v1", api_key="none").get_text_embedding_batch(TEXTS))

check("haystack, OpenAITextEmbedder", [OpenAITextEmbedder(
    api_base_url=URL + "/v1", api_key=Secret.from_token("none"), model=MODEL).run(text=TEXTS[0])["embedding"]], WANT[:1])

order = [e["index"] for e in plain("/rerank", {"query": "q", "texts": ["x", "y", "z"]})]
for name, ranker in ("v1", cohere.Client("none", base_url=URL)), ("v2", cohere.ClientV2("none", base_url=URL)):
    results = ranker.rerank(model=RERANKER, query="q", documents=["x", "y", "z"], top_n=2).results
    check("cohere " + name, [[float(r.index) for r in results]], [[float(i) for i in order[:2]]])

print("%d clients, %d differ" % (len(checks), checks.count(False)))
sys.exit(not all(checks))
