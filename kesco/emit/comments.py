"""The words behind inserted lines: what waits for what, and why."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kesco.ir.flow import Region, Site
from kesco.ir.syncplan import Wait


def wait_reason(region: Region, wait: Wait) -> str:
    """Why an operation waits, such as ``wait for sobel#2 (RAW on coarse)``; at most three dependences are named.

    For the order of tasks: ``square#1 waits for sobel#2 (zone of priority 3 before 2)``.
    """
    dependences = wait.dependences
    if not dependences:
        name, source = (region.sites[n].label for n in (wait.target, wait.source))
        return f"{name} waits for {source} ({wait.why})"
    text = ", ".join(dict.fromkeys(f"{d.kind.value} on {d.buffer.name}" for d in dependences[:3]))
    around = " of an earlier iteration" if all(d.carried for d in dependences) else ""
    return f"wait for {region.sites[dependences[0].source].label}{around} ({text})"


def who_waits(labels: Collection[str]) -> str:
    """Who waits for a record, such as ``extend waits for this``; of many launches of a kernel, its name."""
    names = sorted(labels)
    if len(names) > 2:
        names = sorted({label.partition("#")[0] for label in labels})
    who = ", ".join(names[:4]) + (" and others" if len(names) > 4 else "")
    return f"{who} wait{'' if len(names) > 1 else 's'} for this"


def why_joined(sites: Sequence[Site]) -> str:
    """Why the default stream waits for the others before a place, which is that of all these."""
    label = sites[0].label
    kind = label.partition("#")[0]
    seen_by = "the caller" if kind in ("return", "end", "throw") else kind if len(sites) > 1 else label
    return f"// kesco: {seen_by} sees all of this as done on the default stream"
