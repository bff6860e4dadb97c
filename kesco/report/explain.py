"""The outcome in words: ``explain(result)`` says what each operation touches, where it goes, and why.

In: the outcome of a compilation. Out: plain text for a wide terminal. It is apart from the pictures because
words can say why, and from the diagnostics because those speak only of what a user may want to change.

Method, for each function:

1. A headline: rewritten on how many streams, or why it stays serial; width, levels, waits; the run-time
   checks.
2. One card for each operation in the order of the text: a head line, and a line for each thing it waits for,
   each wait that turned out not to be needed, each join and fence, all with reasons.
3. Cards of one unrolled operation that differ in numbers only are shown as one, the numbers as ranges:
   ``0…11`` counts by ones, ``0,2…10`` by twos.
4. The verdict of the function and of each loop: concurrent, a chain, lost, or not known.
5. Lost opportunities: everything that kept work from running beside other work, with what the user could do.

What it refuses to do: repeat what the text of the program says, or judge whether something was worth it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kesco.ir.access import AccessMode, BufferKind
from kesco.ir.flow import Region, Role, Site
from kesco.ir.verdicts import Word
from kesco.report import Function, Outcome, counted, iteration_text, levels_of, streams_of, touched
from kesco.report.helps import help_for

_LABEL = 30  # columns that labels may take before the rest of their line moves
_MODES = {"r": "reads", "rw": "reads and writes", "w": "writes"}
_ROLES = {
    Role.ENTRY: "the function begins: everything earlier comes first",
    Role.EXIT: "the function ends",
    Role.LEGACY: "default stream: waits for all streams, and all wait for it",
    Role.DEVICE_SYNC: "the host waits here for the whole device",
    Role.JOIN: "after all pending work",
    Role.HOST: "the host itself",
    Role.RECORD: "records an event",
    Role.WAIT: "makes a stream wait for an event",
    Role.CAPTURE: "begins what may become a graph",
    Role.REPLAY: "ends it",
    Role.STREAM_SYNC: "the host waits for a stream",
    Role.EVENT_SYNC: "the host waits for an event",
}


def explain(result: Outcome) -> str:
    """All functions of the file in words, without a final newline."""
    done = sum(function.rewritten for function in result.functions)
    head = f"{result.path}: {counted(len(result.functions), 'function')}, {done} rewritten"
    lines = [head] if result.functions else [f"{result.path}: nothing to explain"]
    if not result.functions:
        lines += [f"  {one.message}" for one in result.diagnostics]
    for function in result.functions:
        lines += ["", *_function(function)]
    return "\n".join(lines).encode("utf-8", "replace").decode()


def _function(function: Function) -> Iterator[str]:
    region = function.region
    moved = len(function.schedule.stream_of)
    if function.rewritten:
        streams = counted(function.schedule.streams, "stream")
        inside = "".join(f", with {name} ({span})" for name, span in region.members)
        yield f"{region.function} ({region.span}){inside}: {counted(moved, 'operation')} on {streams}"
    else:
        serial = "" if function.follows else "stays serial: "
        yield f"{region.function} ({region.span}): {serial}{function.left_because}"
    if not any(site.role in (Role.MOVABLE, Role.LEGACY) for site in region.sites):
        return
    shape = f"width {function.width}, {counted(len(levels_of(function)), 'level')}"
    if function.rewritten:
        removed = f"{len(function.plan.removed)} not needed"
        shape += f", {counted(len(function.plan.waits), 'wait')} ({removed})"
        shape += f", {counted(len(function.plan.joins), 'join')}"
    yield f"  {shape}"
    if function.verdict is not None:
        yield f"  verdict: {function.verdict.text}"
        for loop in function.verdict.loops:
            yield f"  loop at {loop.span.line}:{loop.span.column}: {loop.text}"
    if function.rewritten and region.guards:
        yield f"  checked at run time: {', '.join(region.guards)} share no memory; else one stream has it all"
    yield ""
    cards = _cards(function)
    width = min(_LABEL, max(len(card.label) for card in cards))
    places = max(len(card.place) for card in cards)
    for card in cards:
        yield f"  {card.place:{places}s}  {card.label:{width}s}  {card.text}"
        yield from (f"  {'':{places}s}    {line}" for line in card.lines)
    missed = list(lost(function))
    if missed:
        yield ""
        yield "  lost opportunities"
    for one in missed:
        yield f"    {one.line}:{one.column}  {one.what}"
        if one.help:
            yield f"      help: {one.help}"


# ---- cards -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Card:
    """One operation in words, or several iterations of one."""

    place: str
    label: str
    text: str
    lines: tuple[str, ...]


def _cards(function: Function) -> list[_Card]:
    """Step 2 and 3: all cards but the one of the entry, iterations of one operation together."""
    region = function.region
    looping = _in_loops(region)
    groups: dict[tuple[int, ...], list[Site]] = {}
    for site in (s for s in region.sites[1:] if s.mark is None):
        unrolled = bool(site.iterations) and site.operation >= 0
        groups.setdefault((site.operation, -1) if unrolled else (site.number,), []).append(site)
    speak = _Speaker(function)
    cards = []
    for sites in groups.values():
        for run in _alike(sites, speak):
            cards.append(_merged(run, speak, run[0].number in looping))
    return cards


class _Speaker:
    """Says what the plan has for one site."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.region, self.plan = function.region, function.plan
        self.stream_of = streams_of(function)
        self.by_target: dict[int, list[str]] = {}
        if function.rewritten:
            self._plan()
        else:
            self._order()

    def _order(self) -> None:
        """A function that was left as it is has no plan, but its dependences say why."""
        for one in self.function.dfg.dependences:
            name = self.region.sites[one.source].label
            self.by_target.setdefault(one.target, []).append(f"after {name}: {one.reason(self.region)}")

    def _plan(self) -> None:
        sites, said = self.region.sites, self.by_target
        for site in self.plan.fences:
            text = "the default stream is made a barrier first: code not seen here may have streams of its own"
            said.setdefault(site or min(self.stream_of), []).append(text)
        for wait in self.plan.waits:
            why = "; ".join(dict.fromkeys(d.reason(self.region) for d in wait.dependences)) or wait.why
            name = f"{sites[wait.source].label} on stream {self.stream_of[wait.source]}"
            said.setdefault(wait.target, []).append(f"waits for {name}: {why}")
        for hold in self.function.schedule.holds:
            done = f"{hold.share} % of {sites[hold.mark].label} on stream {self.stream_of[hold.mark]}"
            said.setdefault(hold.target, []).append(f"held until {done} are done: {hold.why}")
        for released, why in self.function.schedule.released:
            said.setdefault(released, []).append(f"not held any further: {why}")
        for removed in self.plan.removed:
            edge = removed.source, removed.target
            found = self.function.dfg.between(*edge) if self.function.dfg.graph.has_edge(*edge) else ()
            around = " around a loop" if found and all(d.carried for d in found) else ""
            why = ", ".join(dict.fromkeys(f"{d.kind.value} on {d.buffer.name}" for d in found)) + around
            name = sites[removed.source].label
            said.setdefault(removed.target, []).append(f"no wait for {name} ({why}): {removed.because}")
        for join in self.plan.joins:
            streams = ", ".join(map(str, join.streams))
            text = f"the default stream waits for stream{'s' * (len(join.streams) > 1)} {streams} first"
            said.setdefault(join.target, []).append(text)

    def where(self, site: Site) -> str:
        """The stream of a site, or its role in words, and its note."""
        if site.number in self.stream_of:
            task = f", task {site.task} of priority {site.priority}" if site.task else ""
            return f"stream {self.stream_of[site.number]}{task}"
        if site.role is Role.LEGACY and site.note:
            return f"default stream: {site.note}"
        if site.role is Role.MOVABLE or (self.function.follows and site.calls):
            whose = "its caller's stream" if self.function.follows else "default stream"
            return f"{whose}, with the rest of the function"
        return _ROLES[site.role] + (f": {site.note}" if site.note else "")

    def texts(self, site: Site) -> list[str]:
        """What a site is and does, line by line; the label and what it touches come first."""
        touches = "; ".join(f"{_MODES[mode]} {', '.join(names)}" for mode, names in touched(site).items())
        where = self.where(site)
        return [site.label, where + (f"; {touches}" if touches else ""), *self.by_target.get(site.number, ())]


def _alike(sites: Sequence[Site], speak: _Speaker) -> Iterator[list[Site]]:
    """Runs of iterations whose texts differ in numbers only."""
    run: list[Site] = []
    pattern: list[str] = []
    for site in sites:
        mine = [_NUMBER.sub("0", text) for text in speak.texts(site)]
        if run and mine != pattern:
            yield run
            run = []
        pattern = mine
        run.append(site)
    yield run


def _merged(run: Sequence[Site], speak: _Speaker, loops: bool) -> _Card:
    label, text, *lines = (_together(column) for column in zip(*map(speak.texts, run), strict=True))
    span = run[0].span
    path = "" if span.path == speak.region.span.path else span.path.rpartition("/")[2] + ":"
    around = iteration_text(run[0])
    if len(run) > 1:
        loops_of = zip(*(site.iterations for site in run), strict=True)
        around = ", ".join(f"{one[0].counter} = {_range([t.value for t in dict.fromkeys(one)])}" for one in loops_of)
        around += f": {len(run)} times"
    extra = [f"for {around}"] if around else []
    extra += ["in a loop"] if loops else []
    if extra:
        text += f" ({', '.join(extra)})"
    return _Card(f"{path}{span.line}:{span.column}", label, text, tuple(lines))


_NUMBER = re.compile("[0-9]+")


def _together(texts: Sequence[str]) -> str:
    """Texts that differ in numbers only as one, with ranges for the numbers that differ."""
    parts = _NUMBER.split(texts[0])
    numbers = []
    for column in zip(*map(_NUMBER.findall, texts), strict=True):
        numbers.append(_range([int(n) for n in column]) if len(set(column)) > 1 else column[0])
    return parts[0] + "".join(number + part for number, part in zip(numbers, parts[1:], strict=True))


def _range(values: Sequence[int]) -> str:
    """Numbers in order, such as ``0…11``, ``0,2…10``, ``0…15 in turn``."""
    period = next((p for p in range(2, len(values)) if all(v == values[i % p] for i, v in enumerate(values))), 0)
    if period:
        return f"{_range(values[:period])} in turn"
    steps = {b - a for a, b in pairwise(values)}
    if len(values) > 2 and len(steps) == 1:
        second = "" if steps == {1} else f",{values[1]}"
        return f"{values[0]}{second}…{values[-1]}"
    return ",".join(map(str, values))


def _in_loops(region: Region) -> frozenset[int]:
    """Sites that control may come back to."""
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(len(region.sites)))
    graph.add_edges_from((site, after) for site, many in enumerate(region.successors) for after in many)
    loops = [part for part in nx.strongly_connected_components(graph) if len(part) > 1]
    alone = {site for site, after in enumerate(region.successors) if site in after}
    return frozenset(alone.union(*loops))


# ---- lost opportunities ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Lost:
    """Something that kept work from running beside other work: where, what, and what the user could do."""

    line: int
    column: int
    what: str
    help: str


def lost(function: Function) -> Iterator[Lost]:
    """Step 5."""
    region, given = function.region, function.verdict
    alone = given is not None and given.word in (Word.CHAIN, Word.LOST) and function.left_because == given.reason
    works = given is not None or any(s.role in (Role.MOVABLE, Role.LEGACY) for s in region.sites)
    if works and not function.rewritten and not function.follows and not alone:
        why = function.left_because
        advice = given.help if given is not None and given.reason else help_for(why)
        yield Lost(region.span.line, region.span.column, f"{region.function} stays serial: {why}", advice)
    for one in given.lost if given is not None else ():
        place = one.span or region.span
        yield Lost(place.line, place.column, one.message, one.help)
    notes: dict[str, list[Site]] = {}
    unknown: dict[str, list[Site]] = {}
    for site in region.sites:
        if site.role is Role.LEGACY and site.note:
            notes.setdefault(site.note, []).append(site)
        if site.role is Role.MOVABLE:
            for verb, why in _unknown(site):
                unknown.setdefault(f"{verb} memory that is not known: {why}", []).append(site)
    for note, sites in notes.items():
        yield _one(sites, f"on the default stream, a barrier for all: {note}", help_for(note))
    for what, sites in unknown.items():
        yield _one(sites, f"ordered against everything: {what}", help_for(what))


def _unknown(site: Site) -> Iterator[tuple[str, str]]:
    for access in site.accesses:
        if access.buffer.kind is BufferKind.UNKNOWN:
            verb = "writes" if access.mode & AccessMode.WRITE else "reads"
            yield verb, access.why or "kesco cannot tell where it points"


def _one(sites: Sequence[Site], what: str, advice: str) -> Lost:
    return Lost(sites[0].span.line, sites[0].span.column, f"{_names(sites)}: {what}", advice)


def _names(sites: Iterable[Site]) -> str:
    """Labels with those of one name drawn together: ``cudaMemcpy#1…4, cudaMemset``."""
    numbers: dict[str, list[int]] = {}
    for site in sites:
        name, _, number = site.label.partition("#")
        numbers.setdefault(name, []).extend([int(number)] if number.isdigit() else [])
    return ", ".join(name + (f"#{_range(list(dict.fromkeys(n)))}" if n else "") for name, n in numbers.items())
