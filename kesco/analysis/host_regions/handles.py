"""Streams and events as the host has them in its hands: values → `Handle`.

In: what a call gets for a stream or an event. Out: which one it is, None for the legacy default stream. Those of
kesco's prologue have the names that its text has for them.
"""

from __future__ import annotations

from kesco.analysis.host.values import Pointer, Value, scalar
from kesco.ir.flow import CURRENT, Handle


def handle_of(value: Value) -> Handle | None:
    """The stream or event that a value stands for; None for the legacy default stream."""
    atoms = scalar(value)
    if atoms and all(type(one) is int and one in (0, 1) for one in atoms):
        return None  # 0 and cudaStreamLegacy
    handles = {_of(one) for one in atoms if type(one) is Pointer}
    if len(handles) == 1 and len(atoms) == 1:
        one = handles.pop()
        if one is not None:
            return one
        handles.add(None)
    names = ",".join(sorted(h.name for h in handles if h is not None)) or "unknown"
    known = bool(handles) and None not in handles and all(type(a) is Pointer for a in atoms)
    return Handle(f"?{names}", names, known and all(h.blocking for h in handles if h is not None), False)


def _of(atom: Pointer) -> Handle | None:
    one = atom.object
    if one.kind == "kesco" and one.name == "current":
        return CURRENT
    if one.kind == "kesco" and one.name:
        kind, number_ = one.name.split(":")
        return Handle(f"kesco:{one.name}", f"kesco.{kind}[{number_}]")
    if one.kind in ("stream", "event"):
        return Handle(f"{one.kind}:{one.number}", one.name, False, not one.many)
    return None
