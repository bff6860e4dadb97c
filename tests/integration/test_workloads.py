"""The eight programs of the field, in both memory styles, against `workloads/manifest.toml`.

Each file is compiled once. Its graph is the manifest's, its output is accepted, compiles, and is refused as soon as any
one of its waits is gone.
"""

from __future__ import annotations

import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import pytest
from integration.compiled import Compiled, compile_and_keep, read_host_side, waits_and_records, without_one_wait

from kesco.ir.dfg import Dependence
from kesco.ir.flow import Role, SiteKind
from kesco.toolchain.compile import check_compiles
from kesco.toolchain.model import Toolchain
from tests.taken import THOROUGH

ROOT = Path(__file__).resolve().parents[2] / "workloads"
MANIFEST = tomllib.loads((ROOT / "manifest.toml").read_text("utf-8"))

# What kesco makes of each: streams, events, waits, dependences without a wait. Fewer waits are better, but any change
# comes from the distributor or the removal and should be meant. HITS resets its scalars by cudaMemset in one style.
COUNTS = {
    ("vec", "serial"): (3, 1, 1, 1),
    ("vec", "managed"): (2, 1, 1, 1),
    ("bs", "serial"): (12, 0, 0, 0),
    ("bs", "managed"): (10, 0, 0, 0),
    ("img", "serial"): (6, 4, 4, 10),
    ("img", "managed"): (4, 4, 4, 10),
    ("ml", "serial"): (4, 1, 1, 11),
    ("ml", "managed"): (2, 1, 1, 11),
    ("hits", "serial"): (4, 4, 4, 24),
    ("hits", "managed"): (2, 2, 2, 6),
    ("dl", "serial"): (3, 1, 1, 6),
    ("dl", "managed"): (2, 1, 1, 6),
    ("m1", "serial"): (8, 4, 4, 8),
    ("m1", "managed"): (6, 4, 4, 8),
    ("m2", "serial"): (14, 11, 11, 13),
    ("m2", "managed"): (12, 11, 11, 13),
}


@dataclass(frozen=True)
class Workload:
    """One file with what the manifest says of it."""

    name: str
    style: str
    facts: dict
    compiled: Compiled

    @property
    def kernels(self) -> dict[int, str]:
        """Site → label of the kernels of ``main``, in launch order."""
        sites = self.compiled.function("main").region.sites
        return {s.number: s.label for s in sites if s.kind is SiteKind.KERNEL and s.role is Role.MOVABLE}

    def edges(self, carried: bool) -> dict[tuple[str, str, str], set[str]]:
        """(from, to, buffer) → kinds, between kernels."""
        found: dict[tuple[str, str, str], set[str]] = defaultdict(set)
        for one in self.compiled.function("main").dfg.dependences:
            if one.carried == carried and one.source in self.kernels and one.target in self.kernels:
                found[self.kernels[one.source], self.kernels[one.target], one.buffer.name].add(one.kind.value)
        return dict(found)

    def graph(self) -> nx.DiGraph[int]:
        """The kernels with the edges of one pass."""
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(self.kernels)
        dependences: tuple[Dependence, ...] = self.compiled.function("main").dfg.dependences
        graph.add_edges_from(
            (d.source, d.target) for d in dependences if not d.carried and {d.source, d.target} <= self.kernels.keys()
        )
        return graph


@pytest.fixture(scope="module", params=COUNTS, ids="/".join)
def workload(request: pytest.FixtureRequest, toolchain: Toolchain) -> Iterator[Workload]:
    name, style = request.param
    yield Workload(name, style, MANIFEST[name], compile_and_keep(ROOT / name / f"{style}.cu"))


def stated(entries: list[dict]) -> dict[tuple[str, str, str], set[str]]:
    return {(one["from"], one["to"], one["buffer"]): set(one["kinds"]) for one in entries}


def test_the_table_lists_every_program() -> None:
    files = {(name, Path(f).stem) for name, facts in MANIFEST.items() for f in facts["files"] if f.endswith(".cu")}
    assert files == COUNTS.keys()


def test_kernels_are_found_in_launch_order(workload: Workload) -> None:
    assert list(workload.kernels.values()) == workload.facts["kernels"]


def test_edges_are_the_manifests(workload: Workload) -> None:
    assert workload.edges(carried=False) == stated(workload.facts["edges"])


def test_carried_edges_are_the_manifests(workload: Workload) -> None:
    expected = stated(workload.facts.get("carried", []))
    if workload.style == "managed":
        expected = {}  # the host waits for the device in each iteration, before it resets the scalars
    assert workload.edges(carried=True) == expected


def test_width_and_levels_are_the_manifests(workload: Workload) -> None:
    graph = workload.graph()
    levels = [sorted(layer) for layer in nx.topological_generations(graph)]
    below = nx.transitive_closure_dag(graph)
    halves = nx.Graph([(("above", a), ("below", b)) for a, b in below.edges])
    matched = nx.bipartite.maximum_matching(halves, {n for n in halves if n[0] == "above"}) if halves else {}
    width = len(graph) - len(matched) // 2  # Dilworth: the fewest chains that cover a partial order
    facts = workload.facts
    assert (len(levels), max(map(len, levels)), width) == (facts["levels"], facts["level_width"], facts["width"])
    if workload.style == "managed":  # nothing but kernels can be moved there
        assert workload.compiled.function("main").width == facts["width"]


def test_main_is_rewritten_and_nothing_is_complained_about(workload: Workload) -> None:
    assert [one.region.function for one in workload.compiled.rewritten] == ["main"]
    told = [d.code for d in workload.compiled.result.diagnostics if d.code != "K219"]  # what is issued earlier
    assert told == (["K220"] if workload.style == "managed" else [])  # prefetches were not asked for


def test_streams_events_and_waits(workload: Workload) -> None:
    main = workload.compiled.function("main")
    counts = main.schedule.streams, len(main.plan.events), len(main.plan.waits), len(main.plan.removed)
    assert counts == COUNTS[workload.name, workload.style]
    assert not main.plan.joins, "every path ends in a wait for the device, of its own or of the last copy"
    assert not main.plan.fences, "nothing runs before main"


def test_the_text_says_what_the_plan_says(workload: Workload) -> None:
    main = workload.compiled.function("main")
    again = workload.compiled.again("main")
    assert waits_and_records(again) == (len(main.plan.waits), len(main.plan.events))
    numbers = {s.stream.key for s in again.sites if s.role is Role.MOVABLE and s.stream is not None}
    assert len(numbers) == main.schedule.streams
    assert all(s.stream is not None for s in again.sites if s.role is Role.MOVABLE)


def test_the_proof_accepts_it_and_refuses_it_without_any_one_wait(workload: Workload) -> None:
    compiled = workload.compiled
    assert compiled.refuses(compiled.lines) == ""
    tried = 0
    for what, lines in without_one_wait(compiled.lines, compiled.again("main")):
        tried += 1
        said = compiled.refuses(lines)
        assert "may run before" in said, f"accepted without: {what}; it said {said!r}"
        if not THOROUGH and (workload.style == "managed" or tried > 5):
            break  # the waits are those of the serial style
    assert (tried > 0) == (COUNTS[workload.name, workload.style][2] > 0)


def test_the_output_compiles(workload: Workload, toolchain: Toolchain, tmp_path: Path) -> None:
    """One memory style with nvcc, the other's host side with clang. The output finds its headers by -I."""
    output = tmp_path / "output.cu"
    output.write_bytes(workload.compiled.result.text)
    include = f"-I{ROOT / workload.name}"
    if toolchain.nvcc and workload.style == "serial":
        finished = check_compiles(toolchain, output, (include,), "nvcc")
    else:
        finished = read_host_side(toolchain, output, include)
    assert finished.returncode == 0, finished.stderr
    assert "warning" not in finished.stderr, finished.stderr


def test_a_second_run_changes_nothing(workload: Workload, tmp_path: Path) -> None:
    from kesco.options import Options
    from kesco.pipeline import compile_file

    output = tmp_path / "output.cu"
    output.write_bytes(workload.compiled.result.text)
    again = compile_file(str(output), Options())
    assert again.text == again.source
    assert [d.code for d in again.diagnostics] == ["K206"]
