"""What happened, held against the regions that kesco's analysis made of the same file.

In: a `Run`, the regions, the kernels' effects. Out: a `Comparison`: each disagreement with the step that shows it, and
how much was compared. A disagreement is a dependence that kesco may have lost.

Each activation of a function that has a region is followed through the region's graph: a set of sites where control may
be, moved by each step. What is held to be true:

1. work of the device stands at a site; 2. a site that is executed can be reached from the one before, with nothing
between that would have been seen; 3. the memory behind each pointer that a kernel follows, or a copy names, is among
the buffers that the site says: made by the same call, or unknown; 4. two sites that were given the same memory share a
buffer, or one of them may be another's; 5. a call is a site that says the same of all that the functions called do;
6. where an activation ends, the region has an exit; 7. where the host touches managed or pinned memory between two
steps of one activation, control passes a site that says so. (It is seen where the device was given work on the memory
since the host last touched it, and not in front of a call, since it may be the function called that does it.)

The region that puts `main` and the functions that only it calls together is followed in the same way. A region that
says why it stays serial promises nothing of its sites: what disagrees there is kept apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from execution.happened import Activation, Memory, Run, Step
from execution.instrument import Place
from execution.texts import Texts
from kesco.ir.access import Access, AccessMode, Buffer, BufferKind, may_alias, through_parameter
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Held, Region, Role, Site, SiteKind
from kesco.source import Span
from kesco.verify.trace import Copied, Freed, Launched

_PASSED = (SiteKind.HOST_USE, SiteKind.BOUNDARY, SiteKind.CALL, SiteKind.LIBRARY)
"""Sites that control may pass without a step: what the host does, and calls that did nothing with CUDA."""
_MADE = (BufferKind.DEVICE, BufferKind.MANAGED, BufferKind.PINNED)


@dataclass(frozen=True, slots=True)
class Finding:
    """One disagreement, with the step that shows it."""

    kind: str
    step: str
    what: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.step}: {self.what}"


@dataclass(slots=True)
class Comparison:
    """Disagreements, each once, and the number of things compared."""

    findings: dict[Finding, int] = field(default_factory=dict)
    activations: int = 0
    launches: int = 0
    arguments: int = 0  # pointers held against buffers
    unknown: int = 0  # of these, those of which the site says that they may point anywhere
    touches: int = 0  # of the host, held against sites
    apart: int = 0  # launches in functions of which nothing is said
    sites: set[tuple[str, int]] = field(default_factory=set)  # launches in the text that were compared
    serial: Comparison | None = None  # the same of regions that say why they stay serial

    def found(self, kind: str, step: object, what: str) -> None:
        one = Finding(kind, str(step), what)
        self.findings[one] = self.findings.get(one, 0) + 1


@dataclass(frozen=True, slots=True)
class _Use:
    """Memory that a step uses, in the way that a site's access must allow; `why` as the site's accesses have it."""

    memory: Memory
    mode: AccessMode
    why: str

    def __str__(self) -> str:
        return f"{self.mode.text} {self.memory} ({self.why or 'names it'})"


@dataclass(frozen=True, slots=True)
class _Given:
    """What a site calls memory that it was given, how it used it, and whether other work may run at the same time."""

    buffers: frozenset[Buffer]
    mode: AccessMode
    free: bool


def compare(run: Run, regions: tuple[Region, ...], effects: Mapping[str, KernelEffects]) -> Comparison:
    """Hold a run against the regions of its file."""
    return _Comparer(run, regions, effects).compare()


class _Comparer:
    def __init__(self, run: Run, regions: tuple[Region, ...], effects: Mapping[str, KernelEffects]) -> None:
        self.run, self.effects, self.text = run, effects, Texts()
        self.regions = regions
        self.result = self.promised = Comparison(serial=Comparison())
        self.inside: dict[int, list[Step | Activation]] = {}  # of each activation: its steps, and those it called
        self._of: dict[int, Region | None] = {}
        self._uses: dict[int, list[_Use]] = {}
        for one in run.activations:
            if one.caller is not None:
                self.inside.setdefault(id(one.caller), []).append(one)
        for step in run.steps:
            self.inside.setdefault(id(step.activation), []).append(step)
        for items in self.inside.values():
            items.sort(key=lambda item: (item.number, 1) if isinstance(item, Step) else (item.began, 0))

    def compare(self) -> Comparison:
        for activation in self.run.activations:
            region = self._region(activation)
            if region is None or len(region.sites) < 2:
                continue
            assert self.promised.serial is not None
            self.result = self.promised.serial if region.serial_because else self.promised
            self.result.activations += 1
            self._follow(region, activation, frozenset())
            if region.linked is not None:
                members = frozenset(span for _, span in region.linked.members)
                self._follow(region.linked, activation, members)
        for step in self.run.steps:
            region = self._region(step.activation) if step.activation is not None else None
            followed = region is not None and len(region.sites) > 1
            self.promised.apart += any(isinstance(e, Launched) for e in step.events) and not followed
        return self.promised

    def _region(self, activation: Activation) -> Region | None:
        """The region of a function that is entered; None where it is not of this file, or nothing is said of it."""
        key = id(activation.function)
        if key not in self._of:
            one = activation.function
            found = [
                r
                for r in self.regions
                if r.function.rpartition("::")[2] == one.name and self.text.line_in(r.span, one.place)
            ]
            self._of[key] = min(found, key=lambda r: r.span.end - r.span.start) if found else None
        return self._of[key]

    # ---- one activation ---

    def _items(
        self, activation: Activation, members: frozenset[Span]
    ) -> Iterator[tuple[Step | Activation, Place | None]]:
        """What an activation does, in order, with the place of each; members of a whole and CUDA's headers inlined."""
        for item in self.inside.get(id(activation), ()):
            if isinstance(item, Step):
                yield item, item.call.place
                continue
            region = self._region(item) if members else None
            if region is not None and region.span in members:
                yield from self._items(item, members)
            elif item.function.wraps:
                place = item.call.place if item.call else None
                yield from ((one, place) for one, _ in self._items(item, frozenset()))
            else:
                yield item, item.call.place if item.call else None

    def _follow(self, region: Region, activation: Activation, members: frozenset[Span]) -> None:
        states = frozenset((0,))
        given: dict[Memory, list[_Given]] = {}
        last: Step | None = None
        own = False  # whether `last` is what this activation did last
        for item, place in self._items(activation, members):
            if isinstance(item, Step) and own and last is not None:
                self._touched(region, activation, last, states)
            own = isinstance(item, Step)
            uses = self._uses_of(item)
            kinds = (SiteKind.CALL,) if isinstance(item, Activation) else ()
            alike = [s for s in region.sites if self._alike(s, item, kinds)]
            matching = [s.number for s in alike if self.text.holds(s.span, place)]
            matching = matching or [s.number for s in alike if self.text.leads_to(place, s.span)]
            work = self._works(item)
            last = item if isinstance(item, Step) else last
            if not matching:
                reachable = self._passed(region, states)
                over = any(region.sites[n].role is Role.EXIT for n in reachable)
                if work and not over:
                    self.result.found("no site", _named(item), f"in '{region.function}'")
                continue
            again = {n for n in states if region.sites[n].kind is SiteKind.CALL}  # several calls may stand at one place
            reached = [n for n in matching if n in self._next(region, states) | again]
            if not reached:
                before = ", ".join(region.sites[n].label for n in sorted(states))
                self.result.found("order", _named(item), f"no way in '{region.function}' from {before}")
                reached = matching
            allowed = self._allowed(region, activation, item, uses, reached, given)
            states = frozenset(allowed)
            if isinstance(item, Step) and not members:
                self._count(region, item, uses, states)
        if self._is_over(activation) and not any(
            region.sites[n].role is Role.EXIT for n in self._passed(region, states)
        ):
            before = ", ".join(region.sites[n].label for n in sorted(states))
            self.result.found(
                "exit", last or activation.function.name, f"no way out of '{region.function}' from {before}"
            )

    def _count(self, region: Region, step: Step, uses: list[_Use], states: frozenset[int]) -> None:
        if any(isinstance(event, Launched) for event in step.events):
            self.result.launches += 1
            self.result.sites |= {(region.function, region.sites[n].operation) for n in states}
            self.result.arguments += len(uses)
            for use in uses:
                unknown = [b for n in states for b in _buffers(region.sites[n], use) if b.kind is BufferKind.UNKNOWN]
                self.result.unknown += bool(unknown)

    def _touched(self, region: Region, activation: Activation, behind: Step, states: frozenset[int]) -> None:
        """What the host touched behind a step, before the next one of the same activation."""
        passed = [region.sites[n] for n in self._passed(region, states)] if behind.touched else []
        for touch in behind.touched:
            memory = self.run.memory_at(touch.address, behind)
            if memory is None:
                continue
            self.result.touches += 1
            use = _Use(memory, AccessMode.WRITE if touch.writes else AccessMode.READ, "")
            elsewhere = memory.step is None or memory.step.number < activation.began
            if not any(self._buffers_for(s, use, activation) or (s.outside and elsewhere) for s in passed):
                labels = ", ".join(site.label for site in passed)
                self.result.found("host", behind, f"then the host: {use}; '{region.function}' has only {labels}")

    def _is_over(self, activation: Activation) -> bool:
        """Whether it is certain that control came back to its caller by a return."""
        caller = activation.caller
        if caller is None:
            return False
        items = self.inside.get(id(caller), [])
        return items[-1] is not activation

    def _works(self, item: Step | Activation) -> bool:
        if isinstance(item, Step):
            return any(isinstance(event, (Launched, Copied)) for event in item.events)
        return any(self._works(one) for one in self.inside.get(id(item), ()))

    def _alike(self, site: Site, item: Step | Activation, kinds: tuple[SiteKind, ...]) -> bool:
        """Whether a site is of the kind and name of what happens."""
        if (site.operation < 0 and not kinds) or site.role in (Role.ENTRY, Role.EXIT) or site.mark is not None:
            return False
        if kinds:
            return site.kind in kinds
        if site.kind in _PASSED and site.kind is not SiteKind.CALL:
            return False
        assert isinstance(item, Step)
        launches = item.call.launches or item.call.callee.startswith("cudaLaunch")
        if launches or site.kind is SiteKind.KERNEL:
            return launches and site.kind in (SiteKind.KERNEL, SiteKind.CALL)
        return not item.call.callee or _one_name(site.label.partition("#")[0], item.call.callee)

    def _next(self, region: Region, states: frozenset[int]) -> set[int]:
        """The sites that may be executed next."""
        passed = self._passed(region, states)
        return {n for one in passed for n in region.successors[one]}

    def _passed(self, region: Region, states: frozenset[int]) -> set[int]:
        """Where control may be without a step: behind those sites, or behind what it passes from there."""
        found, work = set(states), list(states)
        while work:
            for n in region.successors[work.pop()]:
                site = region.sites[n]
                if n not in found and (site.kind in _PASSED or site.mark is not None):
                    found.add(n)
                    work.append(n)
        return found

    # ---- memory ---

    def _uses_of(self, item: Step | Activation) -> list[_Use]:
        """The memory that a step uses, or all that is used while an activation lasts."""
        if id(item) not in self._uses:
            if isinstance(item, Step):
                found = [use for event in item.events for use in self._event_uses(item, event)]
            else:
                inner = (use for one in self.inside.get(id(item), ()) for use in self._uses_of(one))
                found = list({(u.memory.event.id, u.mode): _Use(u.memory, u.mode, "") for u in inner}.values())
            self._uses[id(item)] = found
        return self._uses[id(item)]

    def _event_uses(self, step: Step, event: object) -> Iterator[_Use]:
        if isinstance(event, Copied):
            for one in event.ranges:
                if one.width and (memory := self.run.memory_at(one.low, step)):
                    yield _Use(memory, AccessMode.WRITE if one.writes else AccessMode.READ, "")
        elif isinstance(event, Freed):
            if memory := self.run.memory_at(event.base, step):
                yield _Use(memory, AccessMode.WRITE, "")
        elif isinstance(event, Launched) and event.arguments is not None and event.name in self.effects:
            for parameter in self.effects[event.name].params:
                given = event.arguments[parameter.index]
                for offset, effect in parameter.fields:
                    address = int.from_bytes(given[offset : offset + 8], "little") if offset >= 0 else 0
                    memory = self.run.memory_at(address, step) if address else None
                    if memory is not None and effect.direct:
                        yield _Use(memory, effect.direct, through_parameter(parameter.index))

    def _allowed(
        self,
        region: Region,
        activation: Activation,
        item: Step | Activation,
        uses: list[_Use],
        reached: list[int],
        given: dict[Memory, list[_Given]],
    ) -> list[int]:
        """Those of the sites whose accesses allow all uses; all of them, and a finding, where none does."""
        for use in uses:
            rest = [n for n in reached if self._buffers_for(region.sites[n], use, activation)]
            if not rest:
                said = ", ".join(sorted({b.name for n in reached for b in _buffers(region.sites[n], use)})) or "nothing"
                label = region.sites[reached[0]].label
                self.result.found("memory", _named(item), f"{use}; site {label} of '{region.function}' says {said}")
            reached = rest or reached
        for use in uses:
            buffers = frozenset(b for n in reached for b in self._buffers_for(region.sites[n], use, activation))
            free = any(_is_free(region.sites[n], use.mode) for n in reached)
            found, earlier = _Given(buffers, use.mode, free), given.setdefault(use.memory, [])
            if not buffers or found in earlier:
                continue
            for other in earlier:
                if not self._may_share(region, found, other):
                    names = [" ".join(sorted(f"{b.name} [{b.key}]" for b in one.buffers)) for one in (found, other)]
                    self.result.found("one memory", _named(item), f"{use} is {names[0]}, and was {names[1]}")
            earlier.append(found)
        return reached

    def _may_share(self, region: Region, one: _Given, other: _Given) -> bool:
        if any(may_alias(a, b) for a in one.buffers for b in other.buffers):
            return True
        if any(b.kind is not BufferKind.ENTRY for b in one.buffers | other.buffers):
            return False
        # Pointers from outside are compared at run time, where it matters: if they are the same, all is serial
        matters = one.free and other.free and AccessMode.WRITE in one.mode | other.mode
        names = {b.name for b in one.buffers | other.buffers}
        return not matters or names <= set(region.guards)

    def _buffers_for(self, site: Site, use: _Use, activation: Activation) -> list[Buffer]:
        return [b for b in _buffers(site, use) if self._may_be(b, use.memory, activation)]

    def _may_be(self, buffer: Buffer, memory: Memory, activation: Activation) -> bool:
        kind, made = memory.event.kind, memory.step
        if buffer.kind is BufferKind.UNKNOWN:
            return True
        if buffer.kind is BufferKind.UNSEEN_HOST:
            return kind not in "dy"
        if buffer.kind is BufferKind.SYMBOL:
            return kind == "s" and memory.event.name == buffer.key
        if buffer.kind is BufferKind.ENTRY:
            return made is None or made.number < activation.began
        if buffer.kind is BufferKind.HOST:
            return kind == "r"
        if buffer.kind not in _MADE or made is None:
            return False
        places = [made.call.place, *(one.call.place for one in _chain(made.activation) if one.call)]
        return any(self.text.holds(buffer.span, place) for place in places)


def _one_name(said: str, called: str) -> bool:
    """Whether a site is called like what was called: the table gives a call and its asynchronous sibling one name."""
    return said == called or said.removesuffix("Async") == called.removesuffix("Async")


def _is_free(site: Site, mode: AccessMode) -> bool:
    """Whether a use of memory may run beside others: not what a copy does on the side that the host waits for."""
    waited = {Held.SOURCE: AccessMode.READ, Held.ALL: AccessMode.WRITE, Held.LATER: AccessMode.WRITE}
    return site.role is Role.MOVABLE and (site.held is None or waited[site.held] != mode)


def _chain(activation: Activation | None) -> list[Activation]:
    return [] if activation is None else activation.chain()


def _named(item: Step | Activation) -> str:
    return str(item) if isinstance(item, Step) else f"call of {item.function.name} at {item.call and item.call.place}"


def _buffers(site: Site, use: _Use) -> list[Buffer]:
    """The buffers that a site says of a use: of the kernel's parameter, or of all that it does."""

    def about(access: Access) -> bool:
        if not use.why or access.buffer.kind is BufferKind.UNKNOWN:
            return True
        return access.why == use.why or access.why.startswith(f"{use.why} ") or access.why.startswith("stated")

    return [a.buffer for a in site.accesses if about(a) and use.mode & a.mode == use.mode]
