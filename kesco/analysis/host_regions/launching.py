"""Launches → sites with what their kernels touch.

In: the launch, the values of its arguments, the effects of kernels. Out: a site of the function that control is in.

1. A launch touches what its kernel's effects say of each parameter, and of each pointer inside one; which bytes, where
its numbers are known. 2. What is not known may be any memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kesco.analysis.host.cuda import Launch
from kesco.analysis.host.memory import State
from kesco.analysis.host.values import Value
from kesco.analysis.host_regions.handles import handle_of
from kesco.analysis.host_regions.kernels import Kernels, Touched, launch_values_of, shape_of
from kesco.analysis.host_regions.pointing import Pointing
from kesco.analysis.host_regions.texts import LAUNCH
from kesco.analysis.host_regions.watching import Watching
from kesco.ir import program as ir
from kesco.ir.access import UNKNOWN, AccessMode
from kesco.ir.effects import KernelEffects
from kesco.ir.flow import Role, SiteKind
from kesco.ir.types import Shape
from kesco.ir.volatiles import is_watched, points_to_volatile
from kesco.llvm.names import display_name, kernel_of


@dataclass(slots=True)
class Launching:
    """Makes sites of launches."""

    pointing: Pointing
    effects: Mapping[str, KernelEffects]

    @property
    def paths(self) -> Watching:
        """Where the sites go."""
        return self.pointing.paths

    def launches(
        self, stub: str, launch: Launch, found: list[tuple[str, Value]], numbers: dict[int, int], state: State
    ) -> None:
        """A kernel is launched with these pointers and numbers; no name: it is not known which."""
        kernel = kernel_of(stub)
        effects = self.effects.get(kernel) if stub else None
        node = self._launch_node(launch)
        name = node.kernel.name if node is not None else display_name(kernel) or "a kernel"
        settings = dict(launch.settings)
        given_ = launch_values_of(numbers, settings)
        kernels = Kernels(self.effects, self.pointing)
        touched, note = kernels.of(effects, self._stated(node, effects, found), found, given_)
        handle = handle_of(settings.get("stream", frozenset()))
        role = Role.MOVABLE if not note or handle is not None else Role.LEGACY
        draft = self.paths.site(state, name, LAUNCH, SiteKind.KERNEL, role, handle)
        if draft is None:
            return
        draft.note = note or draft.note
        draft.acts = draft.acts and all(shape_of(settings.get(one)) for one in ("grid", "block"))
        self.pointing.put_on(draft, handle, name)
        if node is not None and node.kernel.priority is not None:
            draft.priority = node.kernel.priority
        for (buffer, why, part), mode in touched.items():
            draft.touch(buffer, why, mode, part)
        parameters = node.kernel.parameters if node is not None else ()
        records = self.paths.texts.program.records
        given = node.arguments if node is not None else ()
        if any(is_watched(one, records) for one in parameters) or any(points_to_volatile(a, records) for a in given):
            self.paths.volatile.add(draft.operation)
        if effects is None or effects.keeps:
            self.paths.told |= {buffer for _, value in found for buffer in self.pointing.pointed(value)}

    def _launch_node(self, launch: Launch) -> ir.Launch | None:
        activation, at, _, own = self.paths.where()
        operation = self.paths.operation(activation, at, LAUNCH) if own else -1
        nodes = (n for n in ir.walk(activation.function.body) if isinstance(n, ir.Launch))
        return next((n for n in nodes if n.operation == operation >= 0), None)

    def _stated(
        self, node: ir.Launch | None, effects: KernelEffects | None, found: list[tuple[str, Value]]
    ) -> Touched | None:
        """What the author says that a kernel touches whose body is not visible, if anything."""
        if node is None or not (effects is None or effects.opaque):
            return None
        kernel = node.kernel
        given: dict[int, list[Value]] = {}
        for name, value in found:
            given.setdefault(int(name.partition(".")[0]), []).append(value)
        touched: Touched = {}

        def touch(index: int, mode: AccessMode, why: str) -> None:
            parts = [part for value in given.get(index, ()) for part in self.pointing.parts(value)]
            for buffer, _ in parts if index in given else [(UNKNOWN, None)]:
                at = (buffer, why if buffer is not UNKNOWN else f"{why} may point anywhere", None)
                touched[at] = touched.get(at, AccessMode.NONE) | mode

        stated = next((s for s in self.paths.texts.program.stated if s.kernel == kernel.name), None)
        if stated is not None:
            for names, mode in ((stated.reads, AccessMode.READ), (stated.writes, AccessMode.READ_WRITE)):
                for name in names:
                    if name not in kernel.names:
                        return None
                    touch(kernel.names.index(name), mode, f"stated for '{name}'")
            return touched
        if effects is not None or kernel.outputs is None:
            return None
        numbers = (i for i, one in enumerate(kernel.parameters) if one.shape in (Shape.INTEGER, Shape.OTHER))
        for position, index in enumerate(sorted(given.keys() - set(numbers))):
            mode = AccessMode.READ_WRITE if position < kernel.outputs else AccessMode.READ
            touch(index, mode, f"stated by 'outputs = {kernel.outputs}'")
        return touched
