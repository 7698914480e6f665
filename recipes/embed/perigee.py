"""Perigee from Python, by ctypes: there is nothing to compile, and NumPy's arrays are views of the engine's memory.

    import perigee                                          # this file; needs NumPy and LuaJIT's shared library
    model = perigee.open("model.int8.safetensors")          # or perigee.load("checkpoint folder", activations="dynamic")
    vectors = model.embed(["a text", "another"])            # float32 (2, H), not copied
    model.classify("a text")                                # {"label": ..., "score": ..., ...}
    model.qa({"question": "Who?", "context": "She did."})
    model.rerank("a query", ["a document", "another"], top_k=1)

Each task is a method (`dir(model)` lists them). Methods take what the Lua methods of the same names take (lua/API.md): one
input or a list (or a NumPy array), and options as keywords; an option that is None counts as not given. An error in Lua becomes a
perigee.Error. model.truncated() lists the inputs of this thread's last call that were cut.

Threads: a model is a Lua state with a lock. Calls of several threads to one model run one after another, without the GIL; one
call already uses all cores. Models that are opened from one file share its pages, so that a model for each thread costs little
memory.
Processes: fork waits until no call is running, so that a model can be used in the child; the engine starts new threads there. A
pickled model is opened again from its path, so that multiprocessing's "spawn" and Spark work, too.
"""
from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import re
import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import Any, Union

import numpy

try:
    from _perigee_home import HOME  # pip wrote it: the folder that it installed this file from
except ImportError:
    HOME = os.path.dirname(os.path.abspath(__file__))

__all__ = ["Error", "Explanation", "Model", "load", "open"]

Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
# A text, a pair of texts as a list of two, or a dict with the fields that the task reads ("question", "context", "ids" ...).
Input = Union[str, Sequence[Any], dict, numpy.ndarray]
Inputs = Union[Input, Sequence[Input]]

# The chunk that runs in each Lua state. It is called with HOME and a description of the model. It returns a function that calls a
# method of the model. Texts are passed as addresses and lengths: lua_pushlstring outside of a protected call could run out of
# memory, which would abort the process.
SCRIPT = b"""
local here, at, bytes = ...
local ffi = require "ffi"
local function text(address, length)
  return ffi.string(ffi.cast("const char *", address), length)
end
here = text(here, at)
local find = loadfile(here .. "/../../lua/perigee/find.lua") or loadfile(here .. "/../../../lua/5.1/perigee/find.lua")
if find then
  find()
end
local found, perigee = pcall(require, "perigee")
if not found and perigee:find("module 'perigee' not found", 1, true) then
  error("Perigee's Lua modules are not where this file was installed from, " .. here .. ", and not in LUA_PATH", 0)
elseif not found then
  error(perigee, 0)
end
local json = require "perigee.base.json"
local pgee, tensor = require "perigee.ffi", require "perigee.tensor"

-- Decodes a path from hexadecimal digits, because a path need not be UTF-8.
local function path_of(digits)
  return (digits:gsub("..", function(byte) return string.char(tonumber(byte, 16)) end))
end

local function made(how)
  if how.artifact then
    return perigee.open(path_of(how.artifact))
  end
  local model = perigee.load(path_of(how.folder), how.options)
  if how.activations == "f32" then
    return model
  end
  how.settings.activations = how.activations
  how.settings.stats = how.calibration and model:calibrate(how.calibration, { progress = false }) or nil
  return model:quantize(how.settings)
end

local model = made(json.decode(bytes))
local last -- keeps the text that was returned last until the next call

-- A view of a tensor that Python owns: its handle and data, as numbers.
local out = ffi.new "pgee_tensor *[1]"
local function given_away(t)
  pgee.check(pgee.C.pgee_tensor_rows(out, tensor.handle(t), 0, #t))
  t:release()
  return tonumber(ffi.cast("uintptr_t", out[0])), tonumber(ffi.cast("uintptr_t", pgee.C.pgee_tensor_data(out[0])))
end

-- Calls that are not methods in Lua.
local OTHERS = {
  task = function(m) return m.model.task end,
  repr = tostring,
  tasks = function()
    local docs = {}
    for name, task in pairs(perigee.tasks.all()) do
      docs[name] = task.doc or ""
    end
    return docs
  end,
  save = function(m, path, options) return m:save(path_of(path), options) end,
  explain = function(m)
    local report = m:explain()
    return { rows = report.rows, attention = report.attention, notes = report.notes, text = tostring(report) }
  end,
}

return function(address, length)
  local call = json.decode(text(address, length))
  local answer, batch = (OTHERS[call.method] or model[call.method])(model, unpack(call.given, 1, call.count))
  local said, handle, data = { truncated = type(batch) == "table" and batch.truncated or {} }, 0, 0
  if tensor.is(answer) then
    said.shape = answer.shape
    handle, data = given_away(answer)
  else
    said.answer = answer
  end
  last = json.line(said)
  return tonumber(ffi.cast("uintptr_t", ffi.cast("const char *", last))), #last, handle, data
end, pgee.path
"""

_REGISTRY = -10000


class Error(Exception):
    """An error of Perigee; its text says what was wrong."""


def _luajit() -> ctypes.CDLL:
    name = ctypes.util.find_library("luajit-5.1") or "libluajit-5.1.so.2"
    lua = ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)  # Lua's own modules in C look for its functions there
    state, integer, size, number, text = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_double, ctypes.c_char_p
    functions: list[tuple[Any, ...]] = [
        ("luaL_newstate", state), ("luaL_openlibs", None, state), ("lua_close", None, state),
        ("luaL_loadbuffer", integer, state, text, size, text), ("lua_pcall", integer, state, integer, integer, integer),
        ("lua_pushnumber", None, state, number), ("lua_tonumber", number, state, integer),
        ("lua_pushlstring", None, state, text, size), ("lua_tolstring", ctypes.c_void_p, state, integer, ctypes.POINTER(size)),
        ("lua_settop", None, state, integer), ("lua_rawgeti", None, state, integer, integer),
        ("luaL_ref", integer, state, integer),
    ]
    for name, result, *arguments in functions:
        function = getattr(lua, name)
        function.restype, function.argtypes = result, arguments
    return lua


_lua = _luajit()
_free: Any = None  # pgee_tensor_free, once the library is loaded
_tasks: dict[str, str] = {}  # what each task answers, by name, once Lua's modules are loaded
_models: weakref.WeakSet[Model] = weakref.WeakSet()
_making = threading.Lock()


class Explanation(dict):
    """Which kernel runs each linear of a model; `print` shows it as a table.

    "rows": a dict for each matrix product, with name, linears, N, K, precision, kernel, bytes and, in INT8, alpha, scale, zero,
    mode and sqnr (dB; where it is known). "attention": a dict for each layer, with name, heads, D, precision. "notes": texts.
    """

    def __init__(self, rows: Iterable[dict], attention: Iterable[dict], notes: Iterable[str], text: str) -> None:
        super().__init__(rows=list(rows), attention=list(attention), notes=list(notes))
        self._text = text

    def __str__(self) -> str:
        return self._text


class _Vectors:
    """Owns the memory of a tensor as long as an array is a view of it."""

    def __init__(self, handle: int, data: int, shape: Sequence[int]) -> None:
        self.handle, self.free = ctypes.c_void_p(handle), _free
        self.__array_interface__ = {"version": 3, "typestr": "<f4", "shape": tuple(shape), "data": (data, False)}

    def __del__(self) -> None:
        self.free(self.handle)


def _plain(value: Any) -> Any:
    """Converts NumPy's arrays and numbers, which json cannot write, to lists and numbers."""
    if isinstance(value, (numpy.ndarray, numpy.generic)):
        return value.tolist()
    raise TypeError("expected texts, numbers, lists, dicts or NumPy arrays of these, not " + type(value).__name__)


def _check(value: Any, where: str) -> None:
    """Raises an error for values that JSON would change silently: None, and keys of dicts that are not texts."""
    if value is None:
        raise TypeError(f"{where} is None, expected a text, a number, a list, a dict or a NumPy array")
    if isinstance(value, numpy.ndarray) and value.dtype == object:
        value = value.tolist()
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise TypeError(f"{where} has the key {key!r}, expected a text")
            _check(inner, f"{where}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, inner in enumerate(value):
            if not isinstance(inner, str):
                _check(inner, f"{where}[{i}]")


def _given(options: dict) -> dict:
    """The options that are not None."""
    return {name: value for name, value in options.items() if value is not None}


def _path(path: Path) -> str:
    """The absolute path as hexadecimal digits, because a path need not be UTF-8."""
    return os.fsencode(os.path.abspath(path)).hex()


def _bytes(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, default=_plain).encode()


class Model:
    """A model in a Lua state of its own; see open and load. Closed by close(), by `with`, or when nobody has it any more."""

    def __init__(self, how: dict) -> None:
        self._how, self._lock, self._local, self._state = how, threading.Lock(), threading.local(), None
        with _making:
            self._make(how)
            _models.add(self)

    def _make(self, how: dict) -> None:
        global _free
        state = _lua.luaL_newstate()
        if not state:
            raise MemoryError("no memory for a Lua state")
        self._state = state
        _lua.luaL_openlibs(state)
        here, text = os.fsencode(HOME), _bytes(how)
        self._raise(_lua.luaL_loadbuffer(state, SCRIPT, len(SCRIPT), b"=perigee.py"))
        kept = ctypes.create_string_buffer(here)
        _lua.lua_pushnumber(state, ctypes.addressof(kept))
        _lua.lua_pushnumber(state, len(here))
        _lua.lua_pushlstring(state, text, len(text))
        self._raise(_lua.lua_pcall(state, 3, 2, 0))
        path = self._text(-1)
        _lua.lua_settop(state, -2)
        self._call = _lua.luaL_ref(state, _REGISTRY)
        if not _tasks:
            _tasks.update(self._run("tasks"))
        if not _free:
            _free = ctypes.CDLL(os.fsdecode(path)).pgee_tensor_free
            _free.restype, _free.argtypes = None, [ctypes.c_void_p]

    def _text(self, index: int) -> bytes:
        length = ctypes.c_size_t()
        address = _lua.lua_tolstring(self._state, index, ctypes.byref(length))
        return ctypes.string_at(address, length.value) if address else b"an error that is no text"

    def _raise(self, status: int) -> None:
        if status:
            message = re.sub(r"^perigee\.py:\d+: ", "", self._text(-1).decode(errors="replace"))
            _lua.lua_settop(self._state, 0)
            raise Error(message)

    def _run(self, method: str, *given: Any, **options: Any) -> Any:
        options = _given(options)
        for i, value in enumerate(given):
            _check(value, f"{method}: argument {i + 1}")
        for name, value in options.items():
            _check(value, f"{method}: {name}")
        if options:
            given += (options,)
        text = _bytes({"method": method, "given": given, "count": len(given)})
        kept = ctypes.create_string_buffer(text, len(text))
        with self._lock:
            if not self._state:
                raise Error("the model was closed")
            _lua.lua_rawgeti(self._state, _REGISTRY, self._call)
            _lua.lua_pushnumber(self._state, ctypes.addressof(kept))
            _lua.lua_pushnumber(self._state, len(text))
            self._raise(_lua.lua_pcall(self._state, 2, 4, 0))
            address, length, handle, data = (int(_lua.lua_tonumber(self._state, i)) for i in (-4, -3, -2, -1))
            said = json.loads(ctypes.string_at(address, length).decode(errors="surrogateescape"))
            _lua.lua_settop(self._state, 0)
        self._local.truncated = said["truncated"]
        if not handle:
            return said.get("answer")
        return numpy.asarray(_Vectors(handle, data, said["shape"])) if data else numpy.empty(said["shape"], numpy.float32)

    def __getattr__(self, name: str) -> Any:
        """The task of that name as a method: model.embed, model.classify and so on, as Lua's models have them."""
        if name not in _tasks:
            raise AttributeError(f"a model has no {name!r}; its tasks are {', '.join(sorted(_tasks))}")

        def method(*given: Any, **options: Any) -> Any:
            return self._run(name, *given, **options)

        method.__name__, method.__doc__ = name, _tasks[name]
        return method

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *_tasks]

    def truncated(self) -> list[dict]:
        """The inputs of this thread's last call that were cut: [{"input": from 1, "dropped": tokens}, ...]."""
        return getattr(self._local, "truncated", [])

    @property
    def task(self) -> str:
        """What the checkpoint's head is for: "embed", "classify", "qa" ...; the name of the method."""
        return self._run("task")

    def explain(self) -> Explanation:
        """Which kernel runs each linear, with precision, alpha, scale and SQNR."""
        return Explanation(**self._run("explain"))

    def save(self, path: Path, **options: Any) -> None:
        """Writes an artifact, which perigee.open opens. If writing fails, a file that was there before is unchanged."""
        self._run("save", _path(path), **options)

    def __repr__(self) -> str:
        return f"<perigee.Model {self._run('repr')}>" if self._state else "<perigee.Model, closed>"

    def close(self) -> None:
        """Frees the model. A call after that is an Error. Arrays that it returned stay valid."""
        with self._lock:
            state, self._state = self._state, None
            if state:
                _lua.lua_close(state)

    def __enter__(self) -> Model:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self, close: Any = _lua.lua_close) -> None:  # by name: at the very end modules are gone
        state, self._state = self._state, None
        if state:
            close(state)

    def __reduce__(self) -> tuple:
        return Model, (self._how,)


def open(path: Path) -> Model:  # the name that it has in Lua
    """Opens an artifact, a model that save wrote to a file."""
    return Model({"artifact": _path(path)})


def load(
    folder: Path,
    activations: str = "dynamic",
    calibration: Sequence[Input] | None = None,
    settings: dict | None = None,
    **options: Any,
) -> Model:
    """A checkpoint's model, quantized.

    activations: "dynamic"; "static", which needs calibration, a list of texts; or "f32", which quantizes nothing. settings and
    options: those of quantize and load in lua/API.md.
    """
    options, settings = _given(options), {} if settings is None else settings
    for name, value in {"settings": settings, "calibration": False if calibration is None else calibration, **options}.items():
        _check(value, f"load: {name}")
    return Model({
        "folder": _path(folder), "activations": activations, "calibration": False if calibration is None else calibration,
        "settings": settings, "options": options,
    })


_held: list[Model] = []


def _before_fork() -> None:
    _making.acquire()
    _held[:] = list(_models)
    for model in _held:
        model._lock.acquire()


def _after_fork() -> None:
    for model in _held:
        model._lock.release()
    _held.clear()
    _making.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
