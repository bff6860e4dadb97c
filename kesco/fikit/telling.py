"""What a daemon says of itself (`serving.status`), or recorded (`events`), in words and as a table.

In: its state, or a record. Out: text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kesco.fikit.events import Hold, Recorded
from kesco.fikit.metrics import fill_ratio

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
            "at its deadline", "without a prediction, since the higher task was idle for long")  # fmt: skip


def table(status: Mapping[str, Any]) -> str:
    """A line for each task, the most urgent first."""
    rows = [("priority", "task", "pid", "launched", "held", "filled", "expired", "mean wait", "longest", "gap used",
             "beside")]  # fmt: skip
    for one in _tasks(status):
        holds = one["holds"]
        mean = f"{one['waited_ns'] / holds / 1e3:.0f} us" if holds else "-"
        role = "*" if one["number"] == status["holder"] else ""
        longest = f"{one['longest_ns'] / 1e3:.0f} us" if holds else "-"
        used = f"{fill_ratio(status):.0%}" if role and one["fillable_ns"] else "-"
        values = (
            one["pid"],
            one["launched"],
            holds,
            one["grants"][2] + one["credited"],
            one["abandoned"],
            mean,
            longest,
            used,
            f"{one['slow_permille'] / 1000:.2f}" if one["beside"] else "-",
        )
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
        if one["credited"]:
            lines.append(f"  It launched {one['credited']} times on credit, without asking.")
        last = one["last_grant"]
        if last["kernel"] and last["gap_left_ns"]:
            took, left = last["predicted_ns"] / 1e3, last["gap_left_ns"] / 1e3
            lines.append(f"  Last: '{last['kernel']}', taken for {took:.0f} us, with {left:.0f} us left of a gap.")
        if one["trials"]:
            lines.append(f"  {_beside(one)}")
        if one["harms"]:
            lost = one["harm_ns"] / 1e6
            lines.append(f"  Lower work was in its way {one['harms']} times, {lost:.2f} ms in all.")
        if one["launched"] and one["unknown"]:
            part = 100 * one["unknown"] / one["launched"]
            lines.append(f"  Of {part:.0f} % of its launches no time is known: measure it with 'kesco fikit profile'.")
    return "".join(f"{line}\n" for line in lines or ["No task is there."])


def _beside(one: Mapping[str, Any]) -> str:
    """What is known of lower tasks beside a busy one."""
    now = "Others run beside it now" if one["beside"] else "Nobody runs beside it now"
    part = one["beside_ns"] / max(one["uptime_ns"], 1)
    slow = one["slow_permille"]
    cost = f"; beside others its last requests took {abs(slow - 1000) / 10:.1f} % {'more' if slow >= 1000 else 'less'}"
    return f"{now}, and for {part:.0%} of its time in {one['trials']} trials{cost if slow else ''}."


def longest_first(found: Recorded, many: int) -> list[Hold]:
    """The longest holds of a record."""
    return sorted(found.holds, key=lambda hold: hold.begin - hold.end)[:many]


def longest_holds(found: Recorded, many: int) -> str:
    """The longest holds of a record, each with why it was held and why it was let go."""
    lines = []
    for one in longest_first(found, many):
        how = _GRANTED[one.reason] if one.reason is not None else "by its own deadline"
        why = _HELD[one.held].removeprefix("waits: ") if one.held else "it was just being decided"
        lines.append(f"{(one.end - one.begin) / 1e6:.3f} ms  {one.task}: '{one.kernel}'")
        lines.append(f"  because {why}; let go {how}" + (
            f", taken for {one.predicted_ns / 1e3:.0f} us with {one.gap_left_ns / 1e3:.0f} us left"
            if one.gap_left_ns else ""
        ))  # fmt: skip
    return "".join(f"{line}\n" for line in lines or ["Nothing was held."])
