"""What functions without a body do, as data: ``Models.of(name)`` → a `Model`, or None where nothing is known.

In: the name of a function in LLVM IR. Out: a `Model` from ``models/host_ir.toml``, or one made of the entry that the
table of the C library has (`kesco.frontend.api_table`). CUDA's calls are asked for by `cuda_entry`.

A name of C++ is looked up by its mangled form, so that nothing has to be taken apart.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from fnmatch import translate
from functools import cache
from importlib.resources import files
from re import Pattern
from re import compile as pattern

from kesco.frontend.api_table import RESULT, CudaCall, HostCall, cuda_call, host_call, is_cuda_name

_STRINGS = frozenset(("", "new", "changed", "moved", "gone"))
_RETURNS = frozenset(("", "argument", "first", "part", "number", "unknown", "one", "derived"))


class ModelError(ValueError):
    """A table in the package is malformed: a bug of kesco, never of its user."""


@dataclass(frozen=True, slots=True)
class Model:
    """One function, or all that match a name; numbers index its arguments, and None stands for "no such argument"."""

    name: str
    # argument: the first one, as far as is known; first: it, certainly; part: a pointer into what it points to, or
    # null; derived: a pointer into one; one: the number 1; number; unknown
    returns: str = ""
    allocates: int | None = None  # the variable that receives new memory, or -1 for the result
    zeroed: bool = False  # that memory holds zeros
    fails: bool = False  # the result may be null
    frees: int | None = None
    copies: tuple[int, ...] = ()  # to, from, bytes
    fills: tuple[int, ...] = ()  # to, byte, bytes
    begins: int | None = None  # memory whose content is gone
    sets: int | None = None  # a byte that becomes 1
    writes: tuple[int, ...] = ()  # memory that it puts numbers into
    writes_from: int | None = None  # the same for every argument from here on
    counts: bool = False  # where its format says %n, it writes a number through an argument
    out: tuple[int, ...] = ()  # variables that may receive a pointer into an argument
    links: tuple[int, ...] = ()  # nodes that it makes point to each other, and to what they pointed to
    inserts: tuple[int, ...] = ()  # a node, and the one in a ring in front of which it is put
    words: tuple[int, ...] = ()  # where in a node its pointers are
    string: str = ""  # new: the first argument becomes a std::string; changed; moved: from the second; gone
    reads: tuple[int, ...] = ()  # memory that it only reads, where it may otherwise change what it is given
    follows: int | None = None  # a node from which it goes along pointers, to its result
    later: int | None = None  # a function that is called when the program or thread ends
    shows: bool = False  # what it reads, addresses among it, may be found again: in a text, a file
    given: bool = False  # it may change all that its arguments lead to
    keeps: bool = False  # it may show what its arguments lead to to code that is not followed
    throws: bool = False
    closed: bool = False  # its code is not followed, even where it is seen: it calls what a table of the library says
    ends: bool = False  # it does not come back, unless by what it throws


class Models:
    """Answers by name; what was found is kept."""

    def __init__(self) -> None:
        self._found: dict[str, Model | None] = {}

    def of(self, name: str) -> Model | None:
        """What is known of a function, unless it is one of CUDA."""
        if name not in self._found:
            exact, wild = _table()
            found = exact.get(name) or next((replace(m, name=name) for one, m in wild if one.match(name)), None)
            if found is None and (call := host_call(name)) is not None and "::" not in name:
                found = _of_host_call(name, call)
            self._found[name] = found
        return self._found[name]

    def reads(self, name: str) -> tuple[int, ...]:
        """The arguments whose memory a function only reads."""
        model = self.of(name)
        return model.reads if model is not None else ()

    def knows(self, name: str) -> bool:
        """Whether it is known what a function does, or that it belongs to a library and not to the program."""
        return self.of(name) is not None or is_cuda_name(name) or name.startswith(_LIBRARY)

    def is_harmless(self, name: str) -> bool:
        """Whether a function has nothing to do with pointers in memory, as far as is known."""
        model = self.of(name)
        if model is None or is_cuda_name(name):
            return False
        moves = model.copies or model.links or model.inserts or model.given or model.keeps or model.later is not None
        return not moves and model.allocates is None


_LIBRARY = ("_ZSt", "_ZNSt", "_ZNKSt", "__cxa_", "__kmpc_", "omp_", "pthread_", "_ZN9__gnu_cxx", "__gxx_",
            "__gthread", "_Unwind_", "_ZNK9__gnu_cxx")  # fmt: skip


def cuda_entry(name: str, parameters: int | None) -> CudaCall | None:
    """CUDA's entry for a call, by its C name; the wrappers of the C++ header have bodies and end in these."""
    return cuda_call(name, parameters) or cuda_call(name.removesuffix("_ptsz").removesuffix("_ptds"), parameters)


def _of_host_call(name: str, call: HostCall) -> Model | None:
    """The same as a model, unless it calls back."""
    if call.callbacks or call.kind == "thread":
        return None
    return Model(
        name,
        returns="derived",
        allocates=call.allocates,
        fails=call.allocates == RESULT,
        frees=call.frees,
        copies=(RESULT, call.frees) if call.allocates == RESULT and call.frees is not None else (),
        writes=call.writes,
        writes_from=call.writes_from,
        counts=call.counts,
        out=call.out,
        shows=call.kind in ("io", "memory") and call.allocates is None and call.frees is None,
        ends=call.kind == "exit",
    )


@cache
def _table() -> tuple[dict[str, Model], list[tuple[Pattern[str], Model]]]:
    text = files("kesco.analysis").joinpath("models", "host_ir.toml").read_text(encoding="utf-8")
    return parse_models(text)


def parse_models(text: str) -> tuple[dict[str, Model], list[tuple[Pattern[str], Model]]]:
    """Read and check a table: exact names, and patterns with the longest first."""
    known = {one.name for one in fields(Model)} - {"name"}
    exact: dict[str, Model] = {}
    wild: list[Model] = []
    document = tomllib.loads(text)
    for group in document.pop("group", []):
        names = group.pop("names", [])
        known_words = group.get("returns", "") in _RETURNS and group.get("string", "") in _STRINGS
        if not names or not known.issuperset(group) or not known_words:
            raise ModelError(f"the group of {names[:1]}: no names, or a field that there is not")
        group = {key: tuple(value) if isinstance(value, list) else value for key, value in group.items()}
        for name in names:
            model = Model(name, **group)
            if name in exact:
                raise ModelError(f"{name} is listed twice")
            if "*" in name or "[" in name:
                wild.append(model)
            else:
                exact[name] = model
    if document:
        raise ModelError(f"unknown key {next(iter(document))!r}")
    wild.sort(key=lambda one: (-len(one.name), one.name))
    return exact, [(pattern(translate(one.name)), one) for one in wild]
