"""The check by execution itself: each kind of wrong fact is found, and what happened is told as it happened."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from execution.happened import Run
from execution.judging import Opened, opened
from execution.running import How, execute
from kesco.ir.flow import Region, Site, SiteKind
from kesco.verify.trace import Launched

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
HEAD = """
__global__ void one(float* out, const float* in) { out[0] = in[0]; }
__global__ void count(int* flag) { *flag += 1; }
"""

pytestmark = pytest.mark.usefixtures("toolchain")


Runs = Callable[..., tuple[Opened, Run]]


@pytest.fixture
def run(tmp_path: Path) -> Runs:
    """Opens a program that is given as the body of `main`, and what stands before that, and runs it."""

    def run_it(body: str, before: str = "", **how: object) -> tuple[Opened, Run]:
        source = tmp_path / "program.cu"
        source.write_text(f"{HEAD}{before}int main(int argc, char** argv) {{\n{body}\n}}\n")
        program = opened(str(source), (), tmp_path)
        return program, execute(program.built, How(**how))

    return run_it


def _called(happened: Run) -> list[str]:
    """What was called, in order; launches by their kernels."""
    names = []
    for step in happened.steps:
        launched = [one.name for one in step.events if isinstance(one, Launched)]
        names.append(launched[0] if launched else step.call.callee or "through a pointer")
    return names


# ---- wrong facts ---


def _main(regions: tuple[Region, ...], changed: Region) -> tuple[Region, ...]:
    return tuple(changed if one.function == changed.function else one for one in regions)


def _with(region: Region, site: Site) -> Region:
    sites = tuple(site if one.number == site.number else one for one in region.sites)
    return replace(region, sites=sites, linked=None)


def _accesses_dropped(region: Region) -> Iterator[tuple[str, Region]]:
    for site in region.sites:
        for at, access in enumerate(site.accesses):
            if site.kind is SiteKind.KERNEL and access.why.startswith("parameter"):
                rest = (*site.accesses[:at], *site.accesses[at + 1 :])
                yield f"{site.label} without {access.buffer.name}", _with(region, replace(site, accesses=rest))


def _buffers_swapped(region: Region) -> Iterator[tuple[str, Region]]:
    every = sorted({a.buffer for s in region.sites for a in s.accesses})
    for site in region.sites:
        for at, access in enumerate(site.accesses):
            other = every[(every.index(access.buffer) + 1) % len(every)]
            if site.kind is SiteKind.KERNEL and access.why.startswith("parameter"):
                swapped = (*site.accesses[:at], replace(access, buffer=other), *site.accesses[at + 1 :])
                what = f"{site.label}: {other.name} in place of {access.buffer.name}"
                yield what, _with(region, replace(site, accesses=swapped))


def _edges_removed(region: Region) -> Iterator[tuple[str, Region]]:
    for site in region.sites:
        for target in region.successors[site.number]:
            rest = tuple(n for n in region.successors[site.number] if n != target)
            after = (*region.successors[: site.number], rest, *region.successors[site.number + 1 :])
            at_once = site.number == 0 and len(region.successors[0]) > 1  # past a loop that is executed
            if region.sites[target].kind is not SiteKind.BOUNDARY and not at_once:  # how `main` ends is not seen
                what = f"no way from {site.label} to {region.sites[target].label}"
                yield what, replace(region, successors=after, linked=None)


@pytest.mark.parametrize("name", ["ten_kernels", "ping_pong", "memset_between", "array_loop"])
def test_every_wrong_fact_is_found(tmp_path: Path, name: str) -> None:
    program = opened(str(GOLDEN / name / "input.cu"), (), tmp_path)
    happened = execute(program.built, How(("three", "trips", "more")))
    assert not program.against(happened).findings
    region = next(one for one in program.regions if one.function == "main")
    wrong = [*_accesses_dropped(region), *_buffers_swapped(region), *_edges_removed(region)]
    assert len(wrong) > 10
    missed = [what for what, one in wrong if not program.against(happened, _main(program.regions, one)).findings]
    assert missed == []


def test_a_launch_without_a_site_is_found(run: Runs) -> None:
    program, happened = run("int* f; cudaMalloc(&f, 4); count<<<1, 1>>>(f); return cudaDeviceSynchronize();")
    region = next(one for one in program.regions if one.function == "main")
    (site,) = (one for one in region.sites if one.kind is SiteKind.KERNEL)
    other = _with(region, replace(site, kind=SiteKind.HOST_USE))
    (finding,) = program.against(happened, _main(program.regions, other)).findings
    assert finding.kind == "no site"


def test_what_a_call_leads_to_is_held_against_its_site(run: Runs) -> None:
    helper = "static void both(int* a, int* b) { count<<<1, 1>>>(a); count<<<1, 1>>>(b); }\n"
    body = "int *a, *b; cudaMalloc(&a, 4); cudaMalloc(&b, 4); both(a, b); count<<<1, 1>>>(a); cudaDeviceSynchronize();"
    program, happened = run(body, helper)
    assert not program.against(happened).findings
    region = next(one for one in program.regions if one.function == "main")
    (site,) = (one for one in region.sites if one.kind is SiteKind.CALL)
    assert {access.buffer.name for access in site.accesses} == {"a", "b"}
    for access in site.accesses:
        other = _with(region, replace(site, accesses=(access,)))
        (finding,) = program.against(happened, _main(program.regions, other)).findings
        assert finding.kind == "memory" and "call of both" in finding.step


def test_a_function_of_the_users_is_no_function_of_cuda(run: Runs) -> None:
    helper = "static void cudaTwice(int* a) { count<<<1, 1>>>(a); count<<<1, 1>>>(a); }\n"
    program, happened = run("int* a; cudaMalloc(&a, 4); cudaTwice(a); cudaDeviceSynchronize();", helper)
    compared = program.against(happened)
    assert not compared.findings and compared.activations == 2


def test_two_names_of_one_allocation_are_found(run: Runs) -> None:
    body = "int *a, *b; cudaMalloc(&a, 4); b = a; count<<<1, 1>>>(a); count<<<1, 1>>>(b); cudaDeviceSynchronize();"
    program, happened = run(body)
    region = next(one for one in program.regions if one.function == "main")
    site = [one for one in region.sites if one.kind is SiteKind.KERNEL][1]
    (access,) = site.accesses
    twin = replace(access, buffer=replace(access.buffer, key="of the next trip"))  # made by the same call
    other = _with(region, replace(site, accesses=(twin,)))
    assert {one.kind for one in program.against(happened, _main(program.regions, other)).findings} == {"one memory"}


def test_what_the_host_touches_is_held_against_its_sites(run: Runs) -> None:
    body = """int *m, *p;
  cudaMallocManaged(&m, 4), cudaMallocHost(&p, 4);
  count<<<1, 1>>>(m);
  count<<<1, 1>>>(p);
  cudaDeviceSynchronize();
  m[0] = p[0];
  count<<<1, 1>>>(m);
  return cudaDeviceSynchronize();"""
    program, happened = run(body)
    compared = program.against(happened)
    assert not compared.findings and compared.touches == 2
    region = next(one for one in program.regions if one.function == "main")
    (site,) = (one for one in region.sites if one.kind is SiteKind.HOST_USE)
    assert len(site.accesses) == 2
    for access in site.accesses:
        other = _with(region, replace(site, accesses=(access,)))
        (finding,) = program.against(happened, _main(program.regions, other)).findings
        assert finding.kind == "host"


# ---- what happened ---


def test_calls_are_told_in_order_with_their_places(run: Runs) -> None:
    helper = "static int* made(int n) { int* p; cudaMalloc(&p, n); return p; }\n#define RUN(k, p) k<<<1, 2>>>(p)\n"
    body = """int* p[3];
  for (int i = 0; i < 3; ++i) p[i] = made(64);
  one<<<2, 3>>>((float*)p[0], (float*)p[2]);
  RUN(count, p[1]);
  auto gone = cudaFree;
  gone(p[1]);"""
    _, happened = run(body, helper)
    malloc, launch = "cudaMalloc", "_Z3onePfPKf"
    assert _called(happened) == [malloc, malloc, malloc, launch, "_Z5countPi", "through a pointer"]
    assert [(one.step.execution, one.step.activation.caller.function.name) for one in happened.memories] == [
        (number, "made") for number in (1, 2, 3)
    ]
    assert [one.freed for one in happened.memories] == [None, 5, None]
    given = next(one for one in happened.steps[3].events if isinstance(one, Launched)).arguments
    found = [happened.memory_at(int.from_bytes(one, "little"), happened.steps[3]) for one in given]
    assert [one.step.execution for one in found] == [1, 3]
    lines = [step.call.place.line - happened.steps[3].call.place.line for step in happened.steps[3:]]
    assert lines == [0, 1, 3]
    assert happened.ended


def test_a_launch_happens_behind_what_its_arguments_call(run: Runs) -> None:
    helper = "static int* cleared(int* p) { cudaMemset(p, 0, 4); return p; }\n"
    program, happened = run("int* p; cudaMalloc(&p, 4); count<<<1, 1>>>(cleared(p)); cudaDeviceSynchronize();", helper)
    assert _called(happened)[1:] == ["cudaMemset", "_Z5countPi", "cudaDeviceSynchronize"]
    assert not program.against(happened).findings


def test_results_steer_the_host_and_calls_are_bounded(run: Runs) -> None:
    body = """int *flag, h = 0;
  cudaMalloc(&flag, 4);
  while (h == 0) {
    count<<<1, 1>>>(flag);
    cudaMemcpy(&h, flag, 4, cudaMemcpyDeviceToHost);
  }
  one<<<1, 1>>>((float*)flag, (float*)flag);"""
    program, happened = run(body, calls=100)
    assert len(happened.steps) == 100 and not happened.ended
    happened = execute(program.built, How(results=1))
    assert _called(happened)[1:] == ["_Z5countPi", "cudaMemcpy", "_Z3onePfPKf"] and happened.ended
    assert not program.against(happened).findings


def test_an_exception_ends_the_functions_it_leaves(run: Runs) -> None:
    helper = "static void thrower(int* p) { cudaMemset(p, 0, 4); throw 1; }\n"
    body = "int* p; cudaMalloc(&p, 4); try { thrower(p); } catch (int) { cudaMemset(p, 1, 4); } cudaMemset(p, 2, 4);"
    _, happened = run(body, helper)
    assert [step.activation.function.name for step in happened.steps[1:]] == ["thrower", "main", "main"]


def test_what_no_library_has_does_nothing(run: Runs) -> None:
    before = "extern int unseen(int*); extern int table[4];\n"
    _, happened = run("int* p; cudaMalloc(&p, 4 + unseen(nullptr) + table[1]); count<<<1, 1>>>(p);", before)
    assert _called(happened)[1:] == ["_Z5countPi"]


def test_functions_are_called_where_there_is_no_main(tmp_path: Path) -> None:
    source = tmp_path / "program.cu"
    both = "count<<<1, 1>>>(a);\n  count<<<1, 1>>>(b);"
    source.write_text(f"""{HEAD}
struct Pair {{ int* a; int* b; }};
void plain(int* a, int* b) {{
  {both}
}}
void promised(int* __restrict__ a, int* __restrict__ b) {{
  {both}
}}
void by_value(Pair p, int n) {{
  count<<<n, 1>>>(p.a);
}}
""")
    program = opened(str(source), (), tmp_path)
    runs = [execute(program.built, how) for how in program.built.ways(How())]
    assert len(runs) == 9 and all(len(run.activations) == 1 for run in runs)
    same = []
    for run in runs:
        assert not program.against(run).findings
        given = [event.arguments[0] for step in run.steps for event in step.events if isinstance(event, Launched)]
        same.append(len(given) == 2 and given[0] == given[1])
    assert same == [False, False, True, *6 * [False]]  # the third way, unless that was promised
    region = next(one for one in program.regions if one.function == "plain")
    assert region.guards == ("a", "b")
    unguarded = _main(program.regions, replace(region, guards=()))
    assert [bool(program.against(run, unguarded).findings) for run in runs] == same
