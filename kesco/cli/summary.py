"""What `kesco compile` did with a file: a line for people, an object for programs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kesco.ir.compilation import Compilation, FunctionResult


def summary(result: Compilation, target: Path | None) -> str:
    """What was done with each function, in a line."""
    from kesco.ir.flow import Role
    from kesco.ir.scratch import of_each_stream

    done = [f for f in result.functions if f.rewritten]
    where = str(target) if target is not None else "standard output"
    if not done and not result.batches and not result.deferred:
        return f"{where}: launch hooks, and nothing else" if result.changed else f"{where}: unchanged"
    parts = []
    loops = Counter(each.function for each in result.batches)
    later = Counter(each.turn.function for each in result.deferred)
    for one in done:
        removed = len(one.plan.removed)
        operations, streams = _count(len(one.schedule.stream_of), "operation"), _count(_streams(one, result), "stream")
        waits = _count(len(one.plan.waits), "wait")
        moved = {s.operation for s in one.region.sites if s.held is not None and s.role is Role.MOVABLE}
        gone = len({one.region.sites[n].operation for n in one.plan.needless} - moved)
        behind = f" ({len(one.sends.operations)} read in the background)" if one.sends is not None else ""
        behind += f" ({len(one.fetches.operations)} waited for later)" if one.fetches is not None else ""
        copies = f", {len(moved)} of them cudaMemcpy{behind}" if moved else ""
        host = f", {_count(gone, 'synchronize')} taken out" if gone else ""
        graphs = f", {_count(len(one.plan.replays), 'graph')}" if one.plan.replays else ""
        graphs += f", {_count(len(one.turns), 'loop')} with turns beside each other" if one.turns else ""
        often = loops.pop(one.region.function, 0)
        graphs += f", launches of {_count(often, 'loop')} in batches" if often else ""
        graphs += f", {_used_later(many)}" if (many := later.pop(one.region.function, 0)) else ""
        shared = of_each_stream(one.region, one.schedule.as_dict(), one.turns)
        graphs += f", {_count(len(shared), 'scratch buffer')} for each stream" if shared else ""
        saved = f", {_count(one.joins_saved, 'join')} fewer" if one.joins_saved > 0 else ""
        text = f"{operations}{copies} on {streams}, {waits} ({removed} not needed){saved}{host}{graphs}, proven"
        names = " with ".join(filter(None, (f"'{one.region.function}'", _listed(one.region.members))))
        parts.append(f"{names}: {text}")
    if following := [f"'{one.region.function}'" for one in result.functions if one.follows]:
        verb = "launch" if len(following) > 1 else "launches"
        parts.append(f"{', '.join(following)} {verb} on the stream of whoever calls")
    parts += [f"'{name}': launches of {_count(often, 'loop')} in batches, proven" for name, often in loops.items()]
    parts += [f"'{name}': {_used_later(many)}, proven" for name, many in later.items()]
    if result.headers:
        parts.append(f"{_count(len(result.headers), 'header')} edited: {', '.join(h.name for h in result.headers)}")
    return f"{where}: " + "; ".join(parts)


def _used_later(loops: int) -> str:
    return f"results of {_count(loops, 'loop')} used a turn later"


def tally(result: Compilation) -> str:
    """The last line: how many of the functions that launch run concurrently, and what became of the others."""
    from kesco.ir.verdicts import Word

    words = [one.verdict.word for one in result.functions if one.verdict is not None]
    if not words:
        return f"{result.path}: no launching function"
    parts = [f"{words.count(Word.CONCURRENT)} of {_count(len(words), 'launching function')} concurrent"]
    if lost := words.count(Word.LOST):
        parts.append(f"{lost} with lost concurrency (kesco explain {result.path})")
    if chains := words.count(Word.CHAIN):
        parts.append(_count(chains, "chain"))
    if unknown := words.count(Word.UNKNOWN):
        parts.append(f"{unknown} not known")
    return f"{result.path}: {', '.join(parts)}"


def _streams(one: FunctionResult, result: Compilation) -> int:
    """How many streams a function uses: turns of a loop may have others."""
    from kesco.ir.turns import in_flight, width

    turns = [each for other in result.functions for each in other.turns]
    return max(one.schedule.streams, in_flight(turns) * width(turns) if one.turns else 0)


def _listed(members: Any) -> str:
    """The functions whose calls are a part of another one."""
    return ", ".join(f"'{name}'" for name, _ in members)


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def as_object(result: Compilation, target: Path | None) -> dict[str, Any]:
    """The same as plain data, with the diagnostics."""
    functions = [
        {
            "name": one.region.function,
            "file": one.region.span.path,
            "line": one.region.span.line,
            "rewritten": one.rewritten,
            "follows": one.follows,
            "because": one.left_because,
            "operations": len(one.schedule.stream_of) if one.rewritten else 0,
            "streams": _streams(one, result) if one.rewritten else 1,
            "waits": len(one.plan.waits) if one.rewritten else 0,
            "waits_not_needed": len(one.plan.removed) if one.rewritten else 0,
            "verdict": one.verdict.word.value if one.verdict is not None else "",
            "why": one.verdict.why if one.verdict is not None else "",
            "loops": [
                {"line": loop.span.line, "verdict": loop.word.value, "why": loop.why}
                for loop in (one.verdict.loops if one.verdict is not None else ())
            ],
        }
        for one in result.functions
    ]
    said = [one.to_json() for one in result.diagnostics]
    return {
        "output": str(target) if target else "",
        "headers": [
            {"source": one.path, "output": str(target.with_name(one.name))} for one in result.headers if target
        ],
        "changed": result.changed,
        "batches": [{"function": one.function, "line": one.whole.line} for one in result.batches],
        "deferred": [{"function": one.turn.function, "line": one.turn.whole.line} for one in result.deferred],
        "functions": functions,
        "diagnostics": said,
    }
