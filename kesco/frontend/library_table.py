"""What the functions of CUDA's libraries do, as data: cuBLAS, cuFFT, cuRAND, cuSPARSE, cuSOLVER.

In: the name of a called function and how many arguments it is given. Out: a frozen `LibraryCall`, or None for a
function that ``resources/library_api.toml`` does not know, which is opaque. Apart from the table of the runtime's calls
because a library works on the stream of a handle, which no argument of the call names.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, fields, replace
from functools import cache
from importlib.resources import files
from typing import Any

from kesco.frontend.api_table import TableError

KINDS = frozenset(("create", "destroy", "setting", "host", "describe", "set_stream", "pointer_mode", "work"))
UNKNOWN_HANDLE = "its handle came from outside, or is known to code that is not seen"
"""Why a call of work is opaque."""
_SETS = "SetStream"


@dataclass(frozen=True, slots=True)
class LibraryCall:
    """One function; numbers index its arguments.

    Kinds: ``create`` makes a handle or plan, ``destroy`` ends it, ``setting`` changes it, maybe on the device;
    ``host`` only computes or changes something on the host; ``describe`` makes a descriptor, which ``holds`` pointers;
    ``set_stream`` and ``pointer_mode`` say where the handle works, and where scalars and results are; ``work`` gives
    the device work on the handle's stream.
    """

    name: str
    kind: str
    parameters: int
    reads: tuple[int, ...] = ()  # memory of the device; of what is no work, memory of the host
    writes: tuple[int, ...] = ()
    scalars: tuple[int, ...] = ()  # numbers that are read: on the host before it returns, or where the mode says
    results: tuple[int, ...] = ()  # numbers that are written: then the host waits for them, unless the mode says
    reads_held: tuple[int, ...] = ()  # descriptors, of what they hold
    writes_held: tuple[int, ...] = ()
    out: tuple[int, ...] = ()  # variables of the host that are filled in before it returns
    holds: tuple[int, ...] = ()  # pointers that a descriptor keeps
    size: int = 8  # bytes of the handle that is made
    shares: bool = False  # handles whose streams it sets may work on several, with a workspace for each

    @property
    def all_read(self) -> tuple[int, ...]:
        """What it may read, of host or device."""
        return (*self.reads, *self.scalars)

    @property
    def all_written(self) -> tuple[int, ...]:
        """What it may write, of host or device."""
        return (*self.writes, *self.results, *self.out)

    @property
    def holding(self) -> bool:
        """Whether it is about what descriptors hold."""
        return self.kind == "describe" or bool(self.reads_held or self.writes_held)


def library_call(name: str, arguments: int) -> LibraryCall | None:
    """The entry of a function, by its name in the text or the library's own; None where it is opaque."""
    found = library_calls().get(name.removeprefix("::").removesuffix("_v2"))
    return found if found is not None and found.parameters == arguments else None


def setter_of(name: str) -> str:
    """The function that sets the stream of the handle which a call of work is given, or an empty text."""
    entry = library_calls().get(name.removeprefix("::").removesuffix("_v2"))
    if entry is None or entry.kind != "work":
        return ""
    setters = (one.name for one in library_calls().values() if one.kind == "set_stream")
    return next((one for one in setters if name.startswith(one.removesuffix(_SETS))), "")


def shares(setter: str) -> bool:
    """Whether handles whose streams this function sets may work on several of them at a time."""
    entry = library_calls().get(setter)
    return entry is not None and entry.shares


@cache
def library_calls() -> dict[str, LibraryCall]:
    """Every entry, by name."""
    calls: dict[str, LibraryCall] = {}
    text = files("kesco.frontend").joinpath("resources", "library_api.toml").read_text(encoding="utf-8")
    known = {field.name for field in fields(LibraryCall)} - {"name"}
    groups: list[dict[str, Any]] = tomllib.loads(text)["group"]
    for group in groups:
        names, types = group.pop("names"), group.pop("types", "?")
        strange = [field for field in group if field not in known]
        if strange or group.get("kind") not in KINDS or type(group.get("parameters")) is not int:
            raise TableError(f"group of {names[0]}: {', '.join(strange) or 'kind or parameters'} not as expected")
        given: dict[str, Any] = {
            field: tuple(value) if isinstance(value, list) else value for field, value in group.items()
        }
        places: list[object] = [at for value in given.values() if isinstance(value, tuple) for at in value]
        if any(at not in range(given["parameters"]) for at in places):
            raise TableError(f"group of {names[0]}: an argument that it does not have")
        entry = LibraryCall(name="", **given)
        for name in (one.replace("?", letter) for one in names for letter in types):
            if name in calls:
                raise TableError(f"{name}: listed twice")
            calls[name] = replace(entry, name=name)
    return calls
