"""What functions of `std::string` do to one, as its layout in libstdc++ has it.

In: a state, a `Model` with `string`, the arguments of a call. Out: the state, changed.

A string is 32 bytes: where its characters are, how many they are, and 16 bytes for a few of them or for how many there
is room (libstdc++, ``bits/basic_string.h``, the ABI of ``std::__cxx11``). The characters are there, in memory that the
call makes, or where they were: in that of the string before it, or of the one that it is moved from. So what stands
beside a string in an object is left alone.
"""

from __future__ import annotations

import re

from kesco.analysis.host.memory import State
from kesco.analysis.host.models import Model
from kesco.analysis.host.values import NUMBER, Atom, Object, Pointer, Unknown, Value, moved, pointer, pointers, united

_WORD = 8
_OWN = 16  # where the few characters are that fit, and how many these are
_OTHER = re.compile(r"E(m*)(?:RK?|O)S4_")  # a parameter that is a string, behind those that are numbers


def act(state: State, model: Model, values: list[Value], fresh: Object | None) -> None:
    """Do what the model says of strings; `fresh` is the memory that the call may make."""
    kept = set[Atom]()
    for index in _strings(model.name, len(values)):
        constructed = index == 0 and model.string in ("new", "moved") and _constructs(model.name)
        kept |= set() if constructed else _read(state, values[index])
    state.gone |= {one.object for one in kept if type(one) is Pointer and one.object.kind == "heap"}
    if model.string == "gone":
        return
    if fresh is not None:
        kept |= pointer(fresh)
    for index in (0, 1) if model.string == "moved" else (0,):
        _become(state, values[index], kept)


def _constructs(name: str) -> bool:
    return "IcEEC1" in name or "IcEEC2" in name


def _strings(name: str, arguments: int) -> list[int]:
    """Which arguments are strings."""
    other = _OTHER.search(name.partition("ESaIcEE")[2])
    return [0, *([1 + len(other[1])] if other is not None and 1 + len(other[1]) < arguments else [])]


def _read(state: State, string: Value) -> set[Atom]:
    """Where the characters of a string may be, but in itself; they are read."""
    own = {Pointer(one.object, moved(one.offset, (0, _OWN))) for one in pointers(string)}
    found = set[Atom]()
    for atom in state.load(string, _WORD):
        if type(atom) is Pointer:
            _touch(state, atom.object, writes=False)
            found |= {atom} - own
        elif type(atom) is Unknown:
            state.touch(None, writes=False)
            found.add(atom)
    return found


def _become(state: State, string: Value, kept: set[Atom]) -> None:
    own = {Pointer(one.object, moved(one.offset, (0, _OWN))) for one in pointers(string)}
    for one in kept:
        if isinstance(one, Pointer):
            _touch(state, one.object, writes=True)
    state.store(string, united(frozenset(own | kept)), _WORD)
    for at in (_WORD, _OWN, _OWN + _WORD):
        place = frozenset(Pointer(one.object, moved(one.offset, (0, at))) for one in pointers(string))
        state.store(place, NUMBER, _WORD)


def _touch(state: State, one: Object, *, writes: bool) -> None:
    if one.visible and state.is_reached(one):
        state.touch(one, writes=writes)
