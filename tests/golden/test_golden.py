"""One construct, one folder: `input.cu`, what kesco writes for it, and what it says about it.

`expected.cu` is the whole output with the prologue in one line, `expected.txt` a summary, `expected.x.cuh` the edited
copy of a header. ``pytest --update-golden``
rewrites both; the diff is the review. A line ``// golden: --streams 3`` at the top of an input gives options.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from integration.compiled import read_host_side

from kesco.diagnostics import render
from kesco.emit.batches import section_of
from kesco.emit.prologue import END, MARK, is_genuine
from kesco.ir.flow import SiteKind
from kesco.options import Options
from kesco.pipeline import Compilation, FunctionResult, compile_file
from kesco.toolchain.compile import check_compiles
from kesco.toolchain.model import Toolchain

HERE = Path(__file__).parent
CASES = sorted(one.parent.name for one in HERE.glob("*/input.cu"))
# Compiled by nvcc too: guards, loops with counters, joins and fences, macros, branches, other calls than launches.
WITH_NVCC = ("pointer_parameters", "array_loop", "helper_called_twice", "check_macro", "switch_cases", "memset_between",
             "graph_between_waits", "graph_in_a_function", "graph_tried", "memory_reused", "order_of_issue",
             "copies_in_the_background", "copies_of_rows_and_symbols", "tasks_as_graphs", "fikit_hooks",
             "calls_in_expressions", "calls_of_methods", "batches_in_front_of_streams",
             "elements_with_vectors", "calls_through_pointers", "results_used_later", "next_turn_prepared")  # fmt: skip

pytestmark = pytest.mark.usefixtures("toolchain")


@pytest.fixture(scope="module", params=CASES)
def case(request: pytest.FixtureRequest) -> str:
    """A case; pytest puts the tests of one beside each other, so that one of xdist's workers compiles it, once."""
    return str(request.param)


@cache
def compiled(case: str) -> Compilation:
    source = HERE / case / "input.cu"
    found = re.match(r"// golden: (.*)\n", source.read_text("utf-8", "surrogateescape"))
    words = found[1].split() if found else []
    fikit, prefetch = ("--fikit" in words, "--prefetch" in words)
    words = [word for word in words if word not in ("--fikit", "--prefetch")]
    given = dict(zip(words[::2], words[1::2], strict=True))
    strategy, emit = given.get("--strategy", ""), given.get("--emit", "streams")
    memory, streams = given.get("--memory", "keep"), int(given.get("--streams", 0))
    age = int(given["--zone-age"]) if "--zone-age" in given else None
    options = Options(
        streams=streams,
        strategy=strategy,
        emit=emit,
        memory=memory,
        copies=given.get("--copies", "auto"),
        syncs=given.get("--syncs", "move"),
        zone_age=age,
        fikit=fikit,
        prefetch=prefetch,
        headers="expected",
    )
    return compile_file(str(source), options)


def without_section(text: bytes) -> bytes:
    """The text with what batches of launches need in one line."""
    found = section_of(text)
    if found is None:
        return text
    loops = re.search(rb"KescoBatches at\[(\d+)\]", text[slice(*found)])
    assert loops is not None
    return text[: found[0]] + b"// <batches of %s loops>" % loops[1] + text[found[1] :]


def elided(result: Compilation) -> bytes:
    """The output with the prologue, which is the same everywhere but for its numbers, in one line."""
    text = without_section(result.text)
    start, end = text.find(MARK.encode()), text.find(END.encode())
    if start < 0:
        return text
    written = text[start:end].decode()
    streams = re.search(r"cudaStream_t stream\[(\d+)\] = ", written)
    assert streams is not None
    events = sum(len(one.plan.events) for one in result.functions if one.rewritten)
    assert f"KescoEvent done[{max(events, 1)}] = " in written, "C++ has no arrays without elements"
    check = ", run-time check" if "kesco_streams_if_distinct" in written else ""
    stretches = re.search(r"KescoStretch stretches\[(\d+)\]", written)
    timed = f", {stretches[1]} stretches" if stretches is not None else ""
    replays = re.search(r"KescoReplay places\[(\d+)\]", written)
    timed += f", {replays[1]} graphs" if replays is not None else ""
    timed += ", copies" if "KescoRing" in written else ""
    timed += ", in the background" if "KescoSender" in written else ""
    timed += ", memory" if "KescoMemory" in written else ""
    line = f"// <prologue: {streams[1]} streams, {events} events{check}{timed}>"
    return text[:start] + line.encode() + text[text.index(b"\n", end) :]


def summary(result: Compilation) -> Iterator[str]:
    """What was found and done, in words; no paths."""
    for one in result.functions:
        yield from described(one)
    for diagnostic in result.diagnostics:
        yield re.sub(r"(?m)^/\S*/([\w.]+:\d+)", r"\1", re.sub(r"(?m)^.*?input\.cu", "input.cu", render(diagnostic)))


def described(function: FunctionResult) -> Iterator[str]:
    region, plan = function.region, function.plan
    if not function.rewritten:
        yield f"{region.function}: left: {function.left_because}"
        return
    sites = region.sites
    yield f"{region.function}: rewritten, width {function.width}"
    yield from (f"  checked at run time: {', '.join(region.guards)}" for _ in region.guards[:1])
    if function.schedule.by_task:
        tasks = dict.fromkeys((-s.priority, s.task) for s in sites if s.task)
        yield f"  {function.schedule.strategy}: {', '.join(f'{name} has priority {-p}' for p, name in sorted(tasks))}"
    for number in range(function.schedule.streams):
        members = [label(sites[site]) for site, stream in function.schedule.stream_of if stream == number]
        rank = f" (rank {function.schedule.ranks[number]})" if function.schedule.ranks else ""
        yield f"  stream {number}{rank}: {', '.join(members)}"
    for change in function.reordered:
        yield f"  issued in the order {', '.join(str(n + 1) for n in change.order)}; {change.moved} moved"
    for wait in plan.waits:
        reasons = "; ".join(dict.fromkeys(one.reason(region) for one in wait.dependences)) or wait.why
        yield f"  wait {label(sites[wait.source])} -> {label(sites[wait.target])}: {reasons}"
    yield f"  {len(plan.removed)} needed no wait"
    for join in plan.joins:
        yield f"  join of {', '.join(map(str, join.streams))} before {label(sites[join.target])}"
    if function.sends is not None:
        sent = [label(s) for s in sites if s.operation in function.sends.operations and s.kind is SiteKind.COPY]
        places = len(function.sends.before) + len(function.sends.ends)
        yield f"  in the background: {', '.join(sent)}; awaited in {places} places"
    if function.fetches is not None:
        those = [label(s) for s in sites if s.operation in function.fetches.operations and s.kind is SiteKind.COPY]
        places = len(function.fetches.before) + len(function.fetches.ends)
        yield f"  waited for later: {', '.join(those)}; in {places} places"
    for one in plan.replays:
        inside = ", ".join(label(sites[site]) for site in one.sites)
        yield f"  graph{' alone' if one.alone else ''} on stream {one.stream}: {inside}; of {', '.join(one.values)}"
    yield from (f"  fence before {label(sites[number])}" for number in plan.fences)
    legacy = [label(site) for site in sites if site.role.value == "legacy"]
    yield from (f"  on the default stream: {', '.join(legacy)}" for _ in legacy[:1])


def label(site) -> str:  # type: ignore[no-untyped-def]
    where = ", ".join(f"{one.counter}={one.value}" for one in site.iterations)
    return site.label + (f"[{where}]" if where else "")


def test_output_and_summary(case: str, update_golden: bool) -> None:
    result = compiled(case)
    for name, made in (
        ("expected.cu", elided(result)),
        ("expected.txt", "".join(f"{line}\n" for line in summary(result)).encode()),
        *((one.name, one.text) for one in result.headers),
    ):
        path = HERE / case / name
        if update_golden:
            path.write_bytes(made)
        assert path.is_file(), "no such file: run pytest --update-golden and read what it writes"
        assert made.decode("utf-8", "surrogateescape") == path.read_bytes().decode("utf-8", "surrogateescape")


def test_a_second_run_changes_nothing(case: str, tmp_path: Path) -> None:
    output = tmp_path / "output.cu"
    output.write_bytes(compiled(case).text)
    assert is_genuine(output.read_bytes())
    if compiled(case).changed:
        assert compile_file(str(output), Options()).text == output.read_bytes()


def test_clang_reads_the_output(case: str, toolchain: Toolchain, tmp_path: Path) -> None:
    finished = read_host_side(toolchain, written(case, tmp_path), f"-I{HERE / case}")
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("case", WITH_NVCC)
def test_output_compiles_with_nvcc(case: str, toolchain: Toolchain, tmp_path: Path) -> None:
    if toolchain.nvcc is None:
        pytest.skip("no nvcc found")
    finished = check_compiles(toolchain, written(case, tmp_path), (f"-I{HERE / case}",), "nvcc")
    assert finished.returncode == 0, finished.stderr


def written(case: str, folder: Path) -> Path:
    output = folder / "output.cu"
    output.write_bytes(compiled(case).text)
    for one in compiled(case).headers:
        (folder / one.name).write_bytes(one.text)
    return output


# ---- what must hold, whatever the expected files say ----------------------------------------------------------------


def before(function: FunctionResult) -> dict[str, set[str]]:
    """Label → labels of the operations that streams and waits order behind it; for a function without loops."""
    sites, streams = function.region.sites, function.schedule.as_dict()
    direct: dict[int, set[int]] = {number: set() for number in streams}
    for number in streams:
        direct[number] |= {other for other in streams if other > number and streams[other] == streams[number]}
    for wait in function.plan.waits:
        direct[wait.source].add(wait.target)
    for number in sorted(direct, reverse=True):
        direct[number] |= {far for near in direct[number] for far in direct[near]}
    return {sites[number].label: {sites[one].label for one in later} for number, later in direct.items()}


@pytest.mark.parametrize(
    ("case", "first", "second"), [("last_writer_of_two_buffers", "A", "C"), ("last_writer_behind_another", "W2", "N")]
)
@pytest.mark.parametrize("streams", [0, 2, 3, 8])
def test_the_last_writer_comes_first(case: str, first: str, second: str, streams: int) -> None:
    """Two programs that the published tool gets wrong."""
    result = compile_file(str(HERE / case / "input.cu"), Options(streams=streams))
    main = next(one for one in result.functions if one.region.function == "main")
    assert main.rewritten
    assert second in before(main)[first]
    labels = [(main.region.sites[a].label, main.region.sites[b].label) for a, b in main.dfg.graph.edges]
    assert (first, second) in labels


def test_the_published_example() -> None:
    """Streams, order and waits of the ten kernels are the paper's."""
    main = next(one for one in compiled("ten_kernels").functions if one.region.function == "main")
    kernels = [site.number for site in main.region.sites if site.kind.value == "kernel"]
    letter = dict(zip(kernels, "ABCDEFHIJG", strict=True))
    assert "".join(f"{letter[a]}{letter[b]} " for a, b in sorted(main.dfg.graph.edges)) == (
        "AD AE AG BD CE CF DH DI EI EJ FG "
    )
    placed: dict[int, list[str]] = {number: [] for number in range(3)}
    for site in main.schedule.order:
        placed[main.schedule.as_dict()[site]].append(letter[site])
    assert sorted("".join(one) for one in placed.values()) == ["AEI", "BDH", "CFJG"]
    assert sorted(letter[w.source] + letter[w.target] for w in main.plan.waits) == ["AD", "CE", "DI", "EJ"]
