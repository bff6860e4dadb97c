"""The record of a traced process, as kesco/runtime/tracer writes it → values.

In: the text of a record. Out: a `Record`. One activity is one line; the lines are described in tracer.cpp. A record may
end anywhere, because programs do; a line that is cut off or unknown is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from kesco.ir.activity import Activities, Activity
from kesco.llvm.names import display_name

_COPIES = {  # CUpti_ActivityMemcpyKind
    1: "host to device", 2: "device to host", 3: "host to array", 4: "array to host", 5: "array to array",
    6: "array to device", 7: "device to array", 8: "device to device", 9: "host to host", 10: "device to another",
}  # fmt: skip
_WAITS = {1: "for an event", 2: "stream waits for an event", 3: "for a stream", 4: "for the device"}
_STREAM_WAITS = 2  # no wait of the host


@dataclass(frozen=True, slots=True)
class Record:
    """One process: its activities with times in nanoseconds, how many were lost, and the calls of CUPTI that failed."""

    activities: tuple[Activity, ...]
    lost: int = 0
    failed: tuple[str, ...] = ()


def read(text: str) -> Record:
    """The record of one process."""
    activities: list[Activity] = []
    lost = 0
    failed: list[str] = []
    for line in text.splitlines():
        kind, *words = line.split(" ")
        try:
            if kind == "D":
                lost += int(words[0])
            elif kind == "E":
                failed.append(f"{words[0]} (error {int(words[1])})")
            elif (one := _activity(kind, words)) is not None and one.end >= one.start > 0:
                activities.append(one)
        except (ValueError, IndexError):
            continue
    return Record(tuple(activities), lost, tuple(failed))


def _activity(kind: str, words: Sequence[str]) -> Activity | None:
    if kind not in "KMSY":
        return None
    numbers = [int(word) for word in words[: 15 if kind == "K" else None]]
    start, end = float(numbers[0]), float(numbers[1])
    if kind == "K":
        device, context, stream, gx, gy, gz, bx, by, bz, registers, static, dynamic, graph = numbers[2:]
        detail = f"<<<({gx},{gy},{gz}), ({bx},{by},{bz}), {dynamic}>>>, {registers} registers, {static} B static"
        detail += ", in a graph" if graph else ""
        return Activity("kernel", display_name(words[15]), start, end, device, context, stream, 0, detail)
    if kind == "M":
        device, context, stream, size, way = numbers[2:]
        words_ = _COPIES.get(way, "copy")
        return Activity("copy", f"copy {words_}", start, end, device, context, stream, size, words_)
    if kind == "S":
        device, context, stream, size = numbers[2:]
        return Activity("memset", "memset", start, end, device, context, stream, size)
    context, stream, way = numbers[2:]
    if way == _STREAM_WAITS:
        return None
    what = _WAITS.get(way, "for the device")
    return Activity("wait", f"the host waits {what}", start, end, 0, context, stream if way != 4 else -1, 0, what)


def joined(name: str, records: Sequence[Record]) -> Activities:
    """The activities of all processes by start, in microseconds from the first one's beginning."""
    every = [one for record in records for one in record.activities]
    first = min((one.start for one in every if one.kind != "wait"), default=0.0)
    moved = (replace(one, start=(one.start - first) / 1000, end=(one.end - first) / 1000) for one in every)
    return Activities(name, tuple(sorted(moved, key=lambda one: (one.start, one.end))), sum(r.lost for r in records))
