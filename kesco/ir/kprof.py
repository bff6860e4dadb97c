"""The file form of `Costs`: JSON, by convention named ``*.kprof``.

In: a profile or a file's bytes. Out: the other one. Readers of the file need nothing but a JSON parser:

    {"format": "kprof", "version": 1,
     "origin": {"gpu": …, "driver": …, "cuda": …, "method": …, "sources": {file: sha256}, "limits": {name: number}},
     "costs": [{"kind": "kernel", "name": …, "grid": [x, y, z], "block": [x, y, z], "shared": bytes, "at": "file:line",
                "display": …, "time_ns": {"count", "total", "shortest", "longest", "median", "bins": [[n, many], …]},
                "gap_ns": the same, "registers": …, "static_shared": …, "sm": …, "memory": …, "bytes": …}, …]}

What is not known is left out. ``median`` is for people and not read. A member that is added later must not change what
the others mean, and is ignored by who does not know it; anything else takes a new version. A file that is damaged,
newer than this program or no profile at all is refused (K530); nothing of it is used.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from kesco.diagnostics import Diagnostic, Severity
from kesco.errors import UsageError
from kesco.ir.costs import Cost, Costs, Identity, Origin, Three, Times

VERSION = 1
BAD_PROFILE = "K530"
_KINDS = ("kernel", "copy", "memset")
_FACTS = ("registers", "static_shared", "sm", "memory", "bytes")


def to_json(costs: Costs) -> str:
    """A profile as text; the same profile always gives the same text."""
    origin = costs.origin
    head = {
        "format": "kprof",
        "version": VERSION,
        "origin": {
            "gpu": origin.gpu, "driver": origin.driver, "cuda": origin.cuda, "method": origin.method,
            "sources": dict(origin.sources), "limits": dict(origin.limits),
        },
    }  # fmt: skip
    lines = [json.dumps(_cost(one), ensure_ascii=False) for one in costs.costs]
    text = json.dumps(head, indent=1, ensure_ascii=False)
    return text[:-2] + ',\n "costs": [' + ",".join(f"\n  {line}" for line in lines) + "\n ]\n}\n"


def _cost(one: Cost) -> dict[str, object]:
    identity = one.identity
    found: dict[str, object] = {"kind": identity.kind, "name": identity.name}
    if identity.kind == "kernel":
        found |= {"grid": list(identity.grid), "block": list(identity.block), "shared": identity.shared}
    found["at"] = identity.at
    if one.display:
        found["display"] = one.display
    for name, times in (("time_ns", one.time), ("gap_ns", one.gap)):
        if times is not None:
            found[name] = times_to_json(times)
    return found | {name: value for name in _FACTS if (value := getattr(one, name)) is not None}


def times_to_json(times: Times) -> dict[str, object]:
    """A distribution as plain data."""
    return {
        "count": times.count, "total": times.total, "shortest": times.shortest, "longest": times.longest,
        "median": round(times.median), "bins": [list(pair) for pair in times.bins],
    }  # fmt: skip


def read(path: Path) -> Costs:
    """The profile in a file; raises `UsageError` (K530) with what is wrong with it."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _refused(f"cannot read {path}: {error.strerror}", "'kesco profile' writes one") from None
    try:
        found = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        raise _refused(f"{path} is no profile: it is not JSON", "'kesco profile' writes one") from None
    if not isinstance(found, dict) or found.get("format") != "kprof":
        raise _refused(f"{path} is no profile: its 'format' is not 'kprof'", "'kesco profile' writes one")
    version = found.get("version")
    if version != VERSION:
        newer = isinstance(version, int) and version > VERSION
        help_ = "use the kesco that wrote it, or one that is newer" if newer else "measure it again: 'kesco profile'"
        raise _refused(f"{path} has version {version} of the form; this kesco reads version {VERSION}", help_)
    try:
        return from_json(found)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        what = f"it lacks {error}" if isinstance(error, KeyError) else str(error)
        raise _refused(f"{path} is damaged: {what}", "measure it again: 'kesco profile'") from None


def _refused(what: str, help_: str) -> UsageError:
    return UsageError(Diagnostic(BAD_PROFILE, Severity.ERROR, what, help=help_))


def from_json(found: dict[str, Any]) -> Costs:
    """A profile from the file's content, of version `VERSION`; `KeyError`, `TypeError`, `ValueError` if bad."""
    origin = found["origin"]
    texts = {name: str(origin.get(name, "")) for name in ("gpu", "driver", "cuda", "method")}
    sources = tuple(sorted((str(k), str(v)) for k, v in origin.get("sources", {}).items()))
    limits = tuple(sorted((str(k), count_from_json(v, k)) for k, v in origin.get("limits", {}).items()))
    where = Origin(**texts, sources=sources, limits=limits)
    return Costs.of(where, map(_read_cost, found["costs"]))


def _read_cost(found: dict[str, Any]) -> Cost:
    if found["kind"] not in _KINDS:
        raise ValueError(f"an operation of kind '{found['kind']}' is not known")
    shape: tuple[Three, Three, int] = ((0, 0, 0), (0, 0, 0), 0)
    if found["kind"] == "kernel":
        shape = (
            three_from_json(found["grid"]),
            three_from_json(found["block"]),
            count_from_json(found["shared"], "shared"),
        )
    identity = Identity(found["kind"], str(found["name"]), *shape, str(found.get("at", "")))
    time, gap = (times_from_json(found[name]) if name in found else None for name in ("time_ns", "gap_ns"))
    registers, shared, size = (
        count_from_json(found[name], name) if name in found else None
        for name in ("registers", "static_shared", "bytes")
    )
    sm, memory = (_share(found[name], name) if name in found else None for name in ("sm", "memory"))
    return Cost(identity, str(found.get("display", "")), time, gap, registers, shared, sm, memory, size)


def times_from_json(found: dict[str, Any]) -> Times:
    """The distribution that `times_to_json` wrote; `KeyError`, `TypeError`, `ValueError` if it cannot be one."""
    bins = tuple((int(number), count_from_json(many, "bins")) for number, many in found["bins"])
    if any(not -1 <= number < 2500 for number, _ in bins):  # 1.02 to the 2500 is more than any time
        raise ValueError("it has bins that no time falls into")
    ends = [count_from_json(found[name], name) for name in ("count", "total", "shortest", "longest")]
    count, total, shortest, longest = ends
    if count < 1 or count != sum(many for _, many in bins) or list(bins) != sorted(set(bins)):
        raise ValueError("its bins do not hold as many times as it counts")
    if not shortest * count <= total <= longest * count:
        raise ValueError("its total is not between its shortest and longest times")
    return Times(count, total, shortest, longest, bins)


def three_from_json(found: Any) -> Three:
    """The three parts of a grid or a block; `ValueError` for anything else."""
    x, y, z = (count_from_json(one, "grid or block") for one in found)
    return x, y, z


def count_from_json(value: Any, name: str) -> int:
    """A whole number of at least 0 that fits 63 bits; `ValueError` for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 1 << 63:
        raise ValueError(f"'{name}' is not a whole number of at least 0")
    return value


def _share(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"'{name}' is not a share between 0 and 1")
    return float(value)
