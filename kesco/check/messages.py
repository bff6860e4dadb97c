"""What a run showed, in words: findings → diagnostics.

In: findings and places. Out: diagnostics, worst first, each pair of lines once. Codes: K601 a race, K602 a possible
one, K603 memory used after it was freed. How the run itself ended is said by `endings`.
"""

from __future__ import annotations

from kesco.check.places import Places
from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.source import Span
from kesco.verify.clocks import HOST
from kesco.verify.races import Findings, Operation, Race
from kesco.verify.timeline import Step

CERTAIN = frozenset({"K601", "K603"})
POSSIBLE = "K602"
_VERBS = {"RAW": ("writes", "reads"), "WAR": ("reads", "writes"), "WAW": ("writes", "writes")}
_SHOWN = 5  # other pairs that are listed with a possible race


def races(findings: Findings, places: Places) -> list[Diagnostic]:
    """The races, certain ones first; a pair of places is named once, with all that it is about."""
    merged: dict[object, dict[object, Race]] = {}
    for race in findings.races:
        first, second = places.of_stack(race.first.stack), places.of_stack(race.second.stack)
        made = places.of_stack(findings.allocations[race.allocation].stack)
        same = merged.setdefault((first, second, race.first.what, race.second.what, race.certain), {})
        if (race.kind, made) in same:
            same[race.kind, made].times += race.times
        else:
            same[race.kind, made] = race
    pairs = [list(one.values()) for one in merged.values()]
    sure = [_certain(pair, findings, places) for pair in pairs if pair[0].certain]
    found = {(r.first.stack, r.second.stack, r.allocation) for pair in pairs if pair[0].certain for r in pair}
    rest = [race for pair in pairs if not pair[0].certain for race in pair]
    unsaid = [race for race in rest if (race.first.stack, race.second.stack, race.allocation) not in found]
    return sure + _possible(unsaid, findings, places)


def _on(operation: Operation, findings: Findings, places: Places) -> str:
    """On which stream an operation is, in words."""
    if operation.agent == HOST:
        return ""
    stream = findings.streams[operation.agent]
    made = places.of_stack(stream.stack)
    names = {"l": "the default stream", "p": "the default stream of its thread", "g": "a branch of the graph"}
    if stream.kind in names:
        return f" on {names[stream.kind]}"
    return f" on stream {operation.agent}" + (f" (made in line {made.line})" if made else "")


def _memory(race_allocation: int, findings: Findings, places: Places) -> tuple[str, Note]:
    made = findings.allocations[race_allocation]
    name = made.name or places.name(made.stack)
    kinds = {"d": "device memory", "m": "managed memory", "p": "pinned memory", "r": "registered memory",
             "s": "device symbol", "y": "array"}  # fmt: skip
    what = kinds[made.kind]
    size = f"{made.size} byte" + ("" if made.size == 1 else "s")
    return (f"'{name}'" if name else f"{size} of {what}"), Note(f"{size} of {what}", places.of_stack(made.stack))


def _certain(pair: list[Race], findings: Findings, places: Places) -> Diagnostic:
    race = pair[0]
    name, memory = _memory(race.allocation, findings, places)
    early, late = _VERBS[race.kind]
    first, second = race.first, race.second
    where = places.of_stack(first.stack)
    line = f" in line {where.line}" if where else ""
    message = (
        f"{_said(second)}{_on(second, findings, places)} {late} {name}, which {_said(first)}{line} {early}, "
        f"and nothing orders the two ({race.kind})"
    )
    notes = [Note(f"{_said(first)}{_on(first, findings, places)}", where)]
    above, behind = (places.stack(one.stack)[1:3] for one in (first, second))
    notes += [Note("called from here", one) for one in above]
    notes += [Note("the second one was called from here", one) for one in behind if behind != above]
    notes.append(memory)
    for other in pair[1:]:
        also, where_made = _memory(other.allocation, findings, places)
        notes.append(Note(f"the same two, {other.kind} on {also}", where_made.span))
    if first.what.startswith("cudaMemcpy") and not first.what.endswith("Async"):
        notes.append(Note("a copy from pageable memory or within the device may still be under way when it returns"))
    if race.times > 1:
        notes.append(Note(f"it happened {race.times} times in this run"))
    if len(race.steps) > 1:
        notes.append(Note(_time_lines(race, findings, places)))
    return Diagnostic(
        "K601", Severity.ERROR, message, places.of_stack(second.stack), tuple(notes), _help(race, where, places)
    )


def _time_lines(race: Race, findings: Findings, places: Places) -> str:
    """What the two streams did, a line each step, in the order of issue."""
    agents = list(dict.fromkeys((race.first.agent, race.second.agent)))
    heads = [_column(one, findings) for one in agents]
    rows = []
    for step in race.steps:
        where = places.of_stack(step.stack)
        words = ["" for _ in agents]
        marked = {race.steps[0].number: " ◀ first", race.steps[-1].number: " ◀ second"}.get(step.number, "")
        words[agents.index(step.agent)] = step.what + marked
        rows.append((f"line {where.line}" if where else "", words))
    widths = [max([len(heads[i]), *(len(words[i]) for _, words in rows)]) for i in range(len(agents))]
    wide = max(len(line) for line, _ in rows)

    def laid_out(line: str, words: list[str]) -> str:
        cells = (one.ljust(width) for one, width in zip(words, widths, strict=True))
        return f"    {line.ljust(wide)}  {'  '.join(cells)}".rstrip()

    return "\n".join(["in the order of issue:", laid_out("", heads), *(laid_out(line, words) for line, words in rows)])


def _column(agent: int, findings: Findings) -> str:
    if agent == HOST:
        return "the host"
    names = {"l": "default stream", "p": "thread's default stream", "g": f"branch {agent}"}
    return names.get(findings.streams[agent].kind, f"stream {agent}")


def _said(operation: Operation) -> str:
    return operation.what if operation.agent == HOST else f"'{operation.what}'"


def _help(race: Race, first: Span | None, places: Places) -> str:
    second = places.of_stack(race.second.stack)
    behind = f"behind line {first.line}" if first else "behind the first"
    before = f"before line {second.line}" if second else "before the second"
    if race.second.agent == HOST:
        return f"wait for that stream {before}: cudaStreamSynchronize, or cudaEventSynchronize on an event {behind}"
    if race.first.agent != HOST and (recorded := _record_behind(race)):
        place = places.of_stack(recorded.stack)
        line = f" in line {place.line}" if place else ""
        name = recorded.what.removeprefix("record ")
        return (
            f"{name}, recorded{line}, stands behind the first one: let the second one's stream wait for it {before} "
            "(cudaStreamWaitEvent)"
        )
    if race.first.agent == HOST:
        return f"let the host do this before it issues line {second.line if second else ''}".rstrip()
    return (
        f"record an event on the first one's stream {behind} (cudaEventRecord), and let the second one's stream wait "
        f"for it {before} (cudaStreamWaitEvent)"
    )


def _record_behind(race: Race) -> Step | None:
    """An event that was recorded on the first one's stream, behind it and before the second one was issued."""
    for step in race.steps[1:]:
        if step.agent == race.first.agent and step.what.startswith("record event"):
            return step
    return None


def _possible(found: list[Race], findings: Findings, places: Places) -> list[Diagnostic]:
    """One diagnostic for each allocation and reason: these come in crowds."""
    groups: dict[tuple[Span | None, str], list[Race]] = {}
    for race in found:
        made = findings.allocations[race.allocation]
        # A kernel of which nothing is known touches everything: that is one thing to say, not one for each allocation.
        groups.setdefault((None if race.vague else places.of_stack(made.stack), race.vague), []).append(race)
    result = []
    for (_, vague), group in groups.items():
        race = group[0]
        name, memory = _memory(race.allocation, findings, places)
        first = places.of_stack(race.first.stack)
        line = f" in line {first.line}" if first else ""
        message = (
            f"{_said(race.second)}{_on(race.second, findings, places)} and {_said(race.first)}{line} may touch "
            f"the same bytes of {name}, and nothing orders the two"
        )
        why = f"it is not certain: {vague or race.why}"
        notes = [Note(f"{_said(race.first)}{_on(race.first, findings, places)}", first), memory, Note(why)]
        pairs = dict.fromkeys((places.of_stack(r.first.stack), places.of_stack(r.second.stack)) for r in group[1:])
        pairs.pop((first, places.of_stack(race.second.stack)), None)
        others = [f"{a.line} and {b.line}" for a, b in pairs if a and b]
        if others:
            more = ", …" if len(others) > _SHOWN else ""
            notes.append(Note(f"the same holds for lines {', '.join(others[:_SHOWN])}{more}"))
        help_ = "make sure that the parts do not overlap, or order the two with an event"
        if vague:
            help_ = "a kernel whose code kesco cannot follow counts as touching all memory; order the two if it does"
        result.append(
            Diagnostic(POSSIBLE, Severity.WARNING, message, places.of_stack(race.second.stack), tuple(notes), help_)
        )
    return result


def stale(findings: Findings, places: Places) -> list[Diagnostic]:
    """Operations on memory that was freed."""
    result = []
    for one in findings.stale:
        name, memory = _memory(one.allocation, findings, places)
        notes = (Note("freed here", places.of_stack(one.freed)), memory)
        message = f"'{one.operation.what}' is given {name}, which has been freed"
        where = places.of_stack(one.operation.stack)
        result.append(Diagnostic("K603", Severity.ERROR, message, where, notes, "free it after its last use"))
    return result


def count(number: int, what: str) -> str:
    """A number of things in words."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
