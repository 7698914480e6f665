"""What spec/recipes/embed_spec.lua runs: recipes/embed/perigee.py on an artifact of an embedder and a folder of a classifier.

    embed.py ARTIFACT FOLDER VECTORS SCRATCH     VECTORS: what Lua computed for TEXTS, little-endian F32; SCRATCH: a file to write

It prints ok at the end; what does not hold is an exception.
"""
import ctypes
import gc
import locale
import multiprocessing
import os
import pickle
import sys
import tempfile
import threading
import warnings

import numpy

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../recipes/embed"))
import perigee

warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)  # to fork then is what is tested

COMMA = os.environ.get("LOCPATH")  # names a folder with the locale "comma", if there is one
SMALL = 4096  # bytes: handles that Lua has not collected yet
TEXTS = ["a text", "another, longer text", "é 😀", ""]


def same(model, want):
    for _ in range(20):
        if not numpy.array_equal(model.embed(TEXTS), want):
            return False
    return True


def raises(kind, what, f, *given, **options):
    try:
        f(*given, **options)
    except kind as e:
        assert what in str(e), str(e)
        return
    raise AssertionError("no error: " + what)


def live():
    gc.collect()
    f = ctypes.CDLL(PATH).pgee_live_bytes
    f.restype = ctypes.c_int64
    return f()


def in_child(f):
    """Whether f() is true in a child made by fork."""
    pid = os.fork()
    if pid == 0:
        os._exit(0 if f() else 1)
    return os.waitpid(pid, 0)[1] == 0


def arrays(model, want):
    v = model.embed(TEXTS)
    assert v.dtype == numpy.float32 and numpy.array_equal(v, want)
    assert not v.flags.owndata and v.flags.writeable and v.flags.c_contiguous
    one = model.embed(TEXTS[1])
    assert one.shape == want[1].shape and numpy.array_equal(one, want[1])
    assert model.embed([]).shape == (0, want.shape[1])
    assert numpy.array_equal(model.embed(numpy.array(TEXTS)), want)
    assert numpy.array_equal(model.embed({"ids": numpy.array([2, 3])}), model.embed({"ids": [2, 3]}))
    # A view keeps the memory; when the last is gone, so is the memory.
    del v, one
    model.embed(TEXTS * 500)  # the workspace is as large as it gets
    before = live()
    row = model.embed(TEXTS * 500)[3]
    held = live() - before
    assert abs(held - 500 * want.nbytes) < SMALL, held
    assert numpy.array_equal(row, want[3])
    del row
    assert abs(live() - before) < SMALL


def errors(model):
    raises(perigee.Error, "embed: input 2 is 3, expected a text", model.embed, ["a", 3])
    raises(perigee.Error, "embed has no option lung", model.embed, "a", lung="error")
    raises(perigee.Error, "'/nowhere'", perigee.open, "/nowhere")
    assert numpy.array_equal(model.embed("a", long=None, prompt=None), model.embed("a"))
    raises(UnicodeEncodeError, "surrogates", model.embed, "\ud800")
    raises(TypeError, "expected texts, numbers, lists, dicts or NumPy arrays of these, not bytes", model.embed, b"a")
    raises(ValueError, "JSON", model.embed, "a", prompt=float("nan"))
    # Nothing becomes a text that is none.
    raises(TypeError, "embed: argument 1 is None, expected a text", model.embed, None)
    raises(TypeError, "embed: argument 1[1] is None", model.embed, ["a", None])
    raises(TypeError, "embed: argument 1[1] is None", model.embed, numpy.array(["a", None], dtype=object))
    raises(TypeError, "embed: argument 1[0]['ids'][1] is None", model.embed, [{"ids": [2, None]}])
    raises(TypeError, "embed: argument 1 has the key None, expected a text", model.embed, {None: "a"})
    raises(TypeError, "embed: argument 1[0] has the key 1", model.embed, [{1: "a"}])
    raises(TypeError, "not bytes", model.embed, numpy.array([b"a"]))
    raises(TypeError, "NoneType", perigee.open, None)
    closed = pickle.loads(pickle.dumps(model))
    closed.close()
    closed.close()
    raises(perigee.Error, "was closed", closed.embed, "a")
    model.embed(["short", "long " * 200])
    assert [(t["input"], t["dropped"] > 0) for t in model.truncated()] == [(2, True)]
    text = "water " + "long " * 200
    assert numpy.array_equal(model.embed(text), model.embed(text, truncation_side="right"))
    assert not numpy.array_equal(model.embed(text), model.embed(text, truncation_side="left"))


def threads(model, want):
    # The same model in all of them, and each with its own.
    results = []
    own = [pickle.loads(pickle.dumps(model)) for _ in range(3)]
    list_of = [threading.Thread(target=lambda m=m: results.append(same(m, want))) for m in [model] * 3 + own]
    for t in list_of:
        t.start()
    # Forks while they are at work: the child has whole models.
    forked = [in_child(lambda: same(model, want) and same(own[0], want)) for _ in range(5)]
    for t in list_of:
        t.join()
    assert results == [True] * 6 and forked == [True] * 5, (results, forked)
    kept = model.embed(TEXTS)
    assert in_child(lambda: numpy.array_equal(kept, want))
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(same, (model, want))


def tasks(folder):
    with perigee.load(folder) as model:
        one, many = model.classify(["a", "b"]), model.classify([["a", "b"], "c"])
        assert len(one) == 2 and len(many) == 2 and abs(sum(many[0]["scores"].values()) - 1) < 1e-6
        assert many[0]["label"] in many[0]["scores"]
    with perigee.load(folder, activations="static", calibration=["a text", "another"]) as model:
        assert model.classify("a")["label"] in many[0]["scores"]
    with perigee.load(folder, activations="f32", max_tokens=16) as model:
        model.classify("long " * 100)
        assert model.truncated()
    raises(perigee.Error, "alpha is 2", perigee.load, folder, settings={"alpha": 2})


def described(artifact, folder, scratch):
    with perigee.load(folder, activations="static", calibration=["a text", "another"]) as model:
        assert repr(model).startswith(f"<perigee.Model {folder}: bert, INT8") and model.task == "classify", repr(model)
        explained = model.explain()
        row = explained["rows"][0]
        assert row["precision"] == "int8" and row["K"] > 0 and row["scale"] > 0 and row["name"] in str(explained), row
        assert explained["attention"][0]["heads"] > 0 and any("settings" in note for note in explained["notes"])
        answers = model.classify(TEXTS)
        for path in (scratch, os.fsencode(scratch)):
            assert model.save(path) is None
            with perigee.open(path) as saved:
                assert saved.classify(TEXTS) == answers and saved.task == "classify"
                raises(perigee.Error, "save: an artifact is the file that it was opened from", saved.save, scratch + "2")
        raises(perigee.Error, "save has no option lung", model.save, scratch, lung=1)
    assert repr(model) == "<perigee.Model, closed>"
    raises(perigee.Error, "was closed", model.explain)
    with perigee.open(artifact) as model:
        assert model.task == "embed" and artifact in repr(model) and repr(model) == str(model)
        assert isinstance(model.explain(), perigee.Explanation)


def surroundings(model, want, folder):
    """A path that is no UTF-8, and a host that has chosen a locale with a decimal comma, or another directory."""
    with tempfile.TemporaryDirectory() as place:
        for name in (os.fsencode(place) + b"/\xff\xfe", place + "/é ?;%.safetensors"):
            with perigee.load(folder) as other:
                other.save(name)
                answer = other.classify("a")
            with perigee.open(name) as again:
                assert again.classify("a") == answer and "Model" in repr(again)
        raises(perigee.Error, "cannot open", perigee.open, os.fsencode(place) + b"/\xfd")
        if COMMA:
            locale.setlocale(locale.LC_ALL, "comma")
            assert locale.localeconv()["decimal_point"] == ","
        here = os.getcwd()
        os.chdir(place)
        assert numpy.array_equal(model.embed(TEXTS), want)
        with perigee.load(os.path.join(here, folder), calibration=TEXTS, settings={"alpha": 0.45}) as other:
            assert 0 < other.classify("a")["score"] <= 1
        os.chdir(here)
        locale.setlocale(locale.LC_ALL, "C")


if __name__ == "__main__":
    artifact, folder, vectors, scratch = sys.argv[1:]
    m = perigee.open(artifact)
    PATH = os.environ["PERIGEE_LIB"]
    reference = numpy.fromfile(vectors, "<f4").reshape(len(TEXTS), -1)
    arrays(m, reference)
    errors(m)
    threads(m, reference)
    tasks(folder)
    described(artifact, os.path.abspath(folder), scratch)
    surroundings(m, reference, folder)
    print("ok")
