"""What a daemon says of itself (`serving.status`) in words, as a table, and as metrics.

In: its state. Out: text. The metrics have Prometheus' text form, for the textfile collector of a node exporter: the
daemon itself opens no port.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_HELD = (
    "is not held",
    "waits: a task of higher priority has work on the GPU",
    "waits: the higher task is idle, but no gap is predicted that is worth filling",
    "waits: its kernel is longer than what is left of the gap",
    "waits: as much granted work as allowed has not ended",
    "waits: the time that higher tasks may lose is spent",
    "waits: the profile of the gap is no longer believed",
)
_GRANTED = ("as the holder", "because every higher task was away", "to fill a gap", "after waiting long",
            "at its deadline")  # fmt: skip
_COUNTERS = (
    ("launched", "launches, held or not", 1.0),
    ("done", "launches that have ended", 1.0),
    ("passed", "launches that were not held", 1.0),
    ("holds", "launches that were held", 1.0),
    ("abandoned", "holds that the client's deadline ended", 1.0),
    ("waited_ns", "time in holds", 1e-9),
    ("overruns", "fills that had not ended when a higher task came back", 1.0),
    ("harm_ns", "time that lower work was in the way", 1e-9),
    ("gap_ns", "idle time between its launches", 1e-9),
    ("unknown", "launches of which no time is known", 1.0),
    ("lost_records", "launches that the daemon did not see", 1.0),
)


def table(status: Mapping[str, Any]) -> str:
    """A line for each task, the most urgent first."""
    rows = [("priority", "task", "pid", "launched", "held", "filled", "expired", "mean wait", "longest")]
    for one in _tasks(status):
        holds = one["holds"]
        mean = f"{one['waited_ns'] / holds / 1e3:.0f} us" if holds else "-"
        role = "*" if one["number"] == status["holder"] else ""
        longest = f"{one['longest_ns'] / 1e3:.0f} us" if holds else "-"
        values = (one["pid"], one["launched"], holds, one["grants"][2], one["abandoned"], mean, longest)
        rows.append((f"{one['priority']}{role}", one["name"], *map(str, values)))
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "".join("  ".join(w.ljust(n) for w, n in zip(row, widths, strict=True)).rstrip() + "\n" for row in rows)


def _tasks(status: Mapping[str, Any]) -> list[dict[str, Any]]:
    return sorted(status["tasks"], key=lambda one: (-one["priority"], one["number"]))


def explain(status: Mapping[str, Any]) -> str:
    """A paragraph for each task."""
    lines = []
    for one in _tasks(status):
        held = _HELD[one["held_reason"]] if one["held_reason"] < len(_HELD) else "waits"
        kernel = f" with '{one['waits_for']}'" if one["waits_for"] and one["waiting"] else ""
        holder = "holds the GPU: it is never held" if one["number"] == status["holder"] else held + kernel
        lines.append(f"{one['name']} (pid {one['pid']}, priority {one['priority']}) {holder}.")
        grants = [f"{n} {why}" for n, why in zip(one["grants"], _GRANTED, strict=False) if n]
        if grants:
            lines.append(f"  It was let go {', '.join(grants)}; {one['abandoned']} holds ended by its own deadline.")
        last = one["last_grant"]
        if last["kernel"] and last["gap_left_ns"]:
            took, left = last["predicted_ns"] / 1e3, last["gap_left_ns"] / 1e3
            lines.append(f"  Last: '{last['kernel']}', taken for {took:.0f} us, with {left:.0f} us left of a gap.")
        if one["harms"]:
            lost = one["harm_ns"] / 1e6
            lines.append(f"  Lower work was in its way {one['harms']} times, {lost:.2f} ms in all.")
        if one["launched"] and one["unknown"]:
            part = 100 * one["unknown"] / one["launched"]
            lines.append(f"  Of {part:.0f} % of its launches no time is known: measure it with 'kesco fikit profile'.")
    return "".join(f"{line}\n" for line in lines or ["No task is there."])


def metrics(status: Mapping[str, Any]) -> str:
    """The counters in Prometheus' text form."""
    lines = []
    for name, what, unit in _COUNTERS:
        full = f"kesco_fikit_{name.removesuffix('_ns')}{'_seconds' if unit != 1.0 else ''}_total"
        lines += [f"# HELP {full} {what}", f"# TYPE {full} counter"]
        for one in _tasks(status):
            value = f"{one[name] * unit:.9f}" if unit != 1.0 else str(one[name])
            labels = f'task="{one["name"]}",pid="{one["pid"]}",priority="{one["priority"]}"'
            lines.append(f"{full}{{{labels}}} {value}")
    return "\n".join([*lines, ""])
