"""What programs do as they run, proven: pairs that were written by hand, and programs by themselves."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from kesco.analysis.device_steering import kernel_steering
from kesco.analysis.device_touches import KernelTouches
from kesco.analysis.effects import kernel_effects
from kesco.analysis.host_order import execution_of
from kesco.errors import VerificationError
from kesco.ir.execution import Execution, StepKind, Waits
from kesco.ir.touched import Asked
from kesco.nesting import deep
from kesco.options import Options
from kesco.proving import verify_files
from kesco.proving.executions import verify_alone
from kesco.session import device_ir_of, host_ir_of, toolchain_for
from kesco.source import Span
from kesco.verify.executions.agreement import agreement
from kesco.verify.executions.alone import judged

pytestmark = pytest.mark.usefixtures("toolchain")

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
CHECKED = Path(__file__).parent / "check"
NAMES = ("vec", "bs", "img", "ml", "dl", "m1", "m2")  # HITS has one source for two buffers, or memsets for stores
STYLES = {"": "serial.cu", "-DPINNED": "pinned.cu", "-DMANAGED": "managed.cu", "-DPREFETCH": "managed.cu"}
THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
DEEP = 6 if THOROUGH else 4
FEW = NAMES if THOROUGH else ("vec", "m1")


@cache
def compiled(path: str, flags: tuple[str, ...]) -> tuple[str, str]:
    """The IR of both sides of a file."""
    options = Options(flags=flags)
    tools = toolchain_for(options)
    return host_ir_of(tools, path, options), device_ir_of(tools, path, options)


@cache
def executed(path: str, flags: tuple[str, ...] = (), main: str = "main") -> tuple[Execution, Asked]:
    """The execution of a file, of which another function may stand for `main`."""
    host, device = compiled(path, flags)
    effects = {one.name: one for one in kernel_effects(device)}
    deciding = {
        name: frozenset(one.argument for each in roots.values() for one in each) if roots else None
        for name, roots in kernel_steering(device).items()
    }
    text = host.replace(f"@{main}(", "@main(")
    return deep(path, lambda: execution_of(path, text, effects, deciding)), KernelTouches([device])


def of_workload(name: str, style: str) -> tuple[Execution, Execution]:
    flags = (style,) if style else ()
    serial, _ = executed(str(WORKLOADS / name / STYLES[style]), ("-DPREFETCH",) if style == "-DPREFETCH" else ())
    concurrent, _ = executed(str(WORKLOADS / name / "async.cu"), flags)
    assert not serial.refused and not concurrent.refused
    return serial, concurrent


@pytest.mark.thorough
@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("name", FEW)
def test_workloads_by_hand_are_accepted(name: str, style: str) -> None:
    found = agreement(*of_workload(name, style), (None, None))
    assert found.holds, (found.unpaired, found.unordered, found.reversed)
    assert found.pairs > 5


@pytest.mark.thorough
def test_hits_by_hand_is_accepted() -> None:
    """Its last trip records no event for a next one, and waits for none."""
    assert agreement(*of_workload("hits", ""), (None, None)).holds


def without_one(concurrent: Execution) -> Iterator[tuple[StepKind, Span, Execution]]:
    """The execution without the records, waits or synchronizes of one line."""
    lines: dict[tuple[StepKind, Span], set[int]] = {}
    for step in concurrent.steps:
        if step.kind in (StepKind.RECORD, StepKind.WAIT, StepKind.SYNC):
            lines.setdefault((step.kind, step.span), set()).add(step.number)
    for (kind, span), numbers in lines.items():
        steps = tuple(
            replace(one, kind=StepKind.HOST, streams=(), events=(), waits=Waits.NO) if one.number in numbers else one
            for one in concurrent.steps
        )
        yield kind, span, replace(concurrent, steps=steps)


@pytest.mark.parametrize("style", [one for one in STYLES if one != "-DPREFETCH"])  # those only wait for pages
@pytest.mark.parametrize("name", FEW)
def test_each_needed_wait_is_missed(name: str, style: str) -> None:
    serial, concurrent = of_workload(name, style)
    kept = []
    for kind, span, mutant in without_one(concurrent):
        found = agreement(serial, mutant, (None, None))
        if found.holds:
            kept.append((kind, "cudaDeviceSynchronize" in Path(span.path).read_text().splitlines()[span.line - 1]))
        else:
            assert found.unordered
            assert all(one.first.name and one.advice for one in found.unordered)
    # Where nothing is on the default stream before the clock starts, nobody needs to wait for it there.
    assert kept == ([(StepKind.SYNC, True)] if style and (name, style) not in NEEDED else [])


NEEDED = {(name, "-DPINNED") for name in ("vec", "ml", "dl", "img")}  # these set memory there


# ---- wrong ones, as texts

EDITS = {
    "a wait is missing": ("    CHECK(cudaStreamWaitEvent(second, y0_done));\n", ""),
    "a record is missing": ("    CHECK(cudaEventRecord(y0_done, first));\n", ""),
    "the record is too early": (
        "    square<<<opt.grid, opt.block, 0, first>>>(x0, y0, n);\n    CHECK(cudaEventRecord(y0_done, first));\n",
        "    CHECK(cudaEventRecord(y0_done, first));\n    square<<<opt.grid, opt.block, 0, first>>>(x0, y0, n);\n",
    ),
    "the host does not wait": ("    CHECK(cudaStreamSynchronize(second));\n", ""),
    "inputs change places": ("(x0, y0, n)", "(x1, y0, n)"),
    "all inputs change places": ("square<<<opt.grid, opt.block, 0, first>>>(x0, y0", "SWAP"),
    "a launch is missing": ("    square<<<opt.grid, opt.block, 0, second>>>(x1, y1, n);\n", ""),
    "a launch is there twice": (
        "    reduce<<<opt.grid, opt.block, 0, second>>>(y0, y1, res, n);\n",
        2 * "    reduce<<<opt.grid, opt.block, 0, second>>>(y0, y1, res, n);\n",
    ),
    "another number": ("second>>>(x1, y1, n)", "second>>>(x1, y1, n - 1)"),
    "another grid": ("square<<<opt.grid, opt.block, 0, first>>>", "square<<<opt.block, opt.block, 0, first>>>"),
    "only sometimes": (
        "    square<<<opt.grid, opt.block, 0, first>>>",
        "    if (argc > 3) square<<<opt.grid, opt.block, 0, first>>>",
    ),
    "another loop": ("it < opt.iters", "it < opt.iters - 1"),
    "another byte": ("res.reset(0)", "res.reset(1)"),
    "set too late": (
        "    reduce<<<opt.grid, opt.block, 0, second>>>(y0, y1, res, n);\n",
        "    reduce<<<opt.grid, opt.block, 0, second>>>(y0, y1, res, n);\n    res.reset(0);\n",
    ),
}


def edited(old: str, new: str) -> str:
    text = (WORKLOADS / "vec" / "async.cu").read_text()
    text = text.replace('"kernels.cuh"', f'"{WORKLOADS}/vec/kernels.cuh"')
    text = text.replace('"../common', f'"{WORKLOADS}/common')
    assert old in text
    if new == "SWAP":
        return text.replace("(x0, y0, n)", "(x9, y0, n)").replace("(x1, y1", "(x0, y1").replace("(x9", "(x1")
    return text.replace(old, new)


@pytest.mark.parametrize("what", EDITS)
def test_a_wrong_one_is_refused(what: str, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(edited(*EDITS[what]))
    serial, _ = executed(str(WORKLOADS / "vec" / "serial.cu"))
    found = agreement(serial, executed(str(wrong))[0], (None, None))
    assert not found.holds


def test_what_nobody_needs_may_be_there(tmp_path: Path) -> None:
    """One wait more, one less that nobody needs, and memory of its own that is set."""
    more = tmp_path / "more.cu"
    line = "    square<<<opt.grid, opt.block, 0, second>>>(x1, y1, n);\n"
    own = "    static int *mine; if (it == 0) cudaMalloc(&mine, 4);\n    cudaMemsetAsync(mine, 0, 4, second);\n"
    more.write_text(edited(line, f"{line}    CHECK(cudaStreamWaitEvent(first, y0_done));\n{own}"))
    serial, _ = executed(str(WORKLOADS / "vec" / "serial.cu"))
    found = agreement(serial, executed(str(more))[0], (None, None))
    assert found.holds, (found.unpaired, found.unordered, found.reversed)


@pytest.mark.thorough
def test_the_command_proves_pairs_by_hand(tmp_path: Path) -> None:
    serial, by_hand = (str(WORKLOADS / "vec" / name) for name in ("serial.cu", "async.cu"))
    (verdict,) = verify_files(serial, by_hand, Options())
    assert not verdict.problems
    assert verdict.pairs > 10
    wrong = tmp_path / "wrong.cu"
    wrong.write_text(edited(*EDITS["a wait is missing"]))
    (verdict,) = verify_files(serial, str(wrong), Options())
    (problem,) = verdict.problems
    assert problem.code == "K401"
    assert "'reduce' may begin before 'square' is done" in problem.message
    assert "y0_done" in problem.help


# ---- programs by themselves


def kinds() -> tuple[str, dict[str, str]]:
    """The mistakes that `check` is tried on, a function each, and what is to be found in it."""
    text = (CHECKED / "kinds.cu").read_text("utf-8")
    names = re.findall(r"^  CASE\((\w+)\);", text, re.MULTILINE)
    made, wanted = [text[: text.index("int main(")]], {}
    for name in names:
        for which, mended in (("racy", "false"), ("mended", "true")):
            body = f"World world; {name}(world, {mended}); cudaDeviceSynchronize(); return 0;"
            made.append(f'extern "C" int case_{name}_{which}() {{ {body} }}\n')
            wanted[f"case_{name}_{which}"] = "race" if which == "racy" else "clean"
    return "".join(made), wanted


def parts() -> tuple[str, dict[str, str]]:
    """The same of pairs of launches that touch the same bytes, or not."""
    text = (CHECKED / "parts.cu").read_text("utf-8")
    head, main = text.split("int main(int, char **argv) {")
    before = main[: main.index("#define BOTH")]
    cases = {n: f"PAIR({rest});" for n, rest in re.findall(r"^  BOTH\((\w+), (.*)\);$", main, re.MULTILINE)}
    cases |= dict(re.findall(r'argv\[1\], "(\w+)"\)\) \{\n(.*?)\n  \}', main, re.DOTALL))
    made, wanted = [head, "#define PAIR(k, first, second) k<<<1, 256, 0, s>>> first; k<<<1, 256, 0, t>>> second\n"], {}
    for name, body in cases.items():
        made.append(f'extern "C" int case_{name}() {{ {before} {body} cudaDeviceSynchronize(); return 0; }}\n')
        wanted[f"case_{name}"] = {"same": "race", "apart": "clean", "perhaps": "unknown"}[name.partition("_")[0]]
    return "".join(made), wanted


@pytest.mark.parametrize(("cases", "right"), [(kinds, 59), (parts, 55)])
def test_no_clean_program_races_and_no_racy_one_is_clean(
    cases: Callable[[], tuple[str, dict[str, str]]], right: int, tmp_path: Path
) -> None:
    text, wanted = cases()
    path = tmp_path / "cases.cu"
    path.write_text(text)
    count = 0
    for name, what in wanted.items():
        execution, asked = executed(str(path), main=name)
        found = judged(execution, asked)[0]
        said = "race" if found.races else "unknown" if found.findings or execution.refused else "clean"
        assert said == what or "unknown" in (said, what), name
        assert what != "unknown" or said == "unknown", name
        count += said == what
    assert count >= right


ALONE = """\
__global__ void up(float* y, const float* x) { y[threadIdx.x] = x[threadIdx.x] + 1; }
struct Lane { cudaStream_t stream; cudaEvent_t done; };
int main() {
  float *a, *b;
  cudaMalloc(&a, 256);
  cudaMalloc(&b, 256);
  Lane lanes[2];
  for (Lane& one : lanes) {
    cudaStreamCreateWithFlags(&one.stream, cudaStreamNonBlocking);
    cudaEventCreate(&one.done);
  }
  for (int i = 0; i < 5; ++i) {
    up<<<1, 64, 0, lanes[0].stream>>>(a, b);
    cudaEventRecord(lanes[0].done, lanes[0].stream);
    cudaStreamWaitEvent(lanes[1].stream, lanes[0].done, 0);
    up<<<1, 64, 0, lanes[1].stream>>>(b, a);
    cudaEventRecord(lanes[1].done, lanes[1].stream);
    cudaStreamWaitEvent(lanes[0].stream, lanes[1].done, 0);
  }
  cudaDeviceSynchronize();
}
"""


def test_one_program_alone(tmp_path: Path) -> None:
    path = tmp_path / "alone.cu"
    path.write_text(ALONE)
    found = verify_alone(str(path), Options())
    assert (found.races, found.unknown, found.diagnostics) == (0, 0, ())
    assert found.ordered["event"] > 5
    wait = "    cudaStreamWaitEvent(lanes[0].stream, lanes[1].done, 0);\n"
    path.write_text(ALONE.replace(wait, ""))
    found = verify_alone(str(path), Options())
    assert found.races == 1
    (told,) = found.diagnostics
    assert (told.code, told.span is not None and told.span.line) == ("K404", 13)
    assert "wait for" in told.help
    path.write_text(ALONE.replace(wait, "    // kesco: ordered(the kernels do not mind)\n"))
    assert verify_alone(str(path), Options()).races == 1  # not a line of either
    silent = ALONE.replace(wait, "").replace("(a, b);", "(a, b);  // kesco: ordered(they do not mind)")
    path.write_text(silent)
    found = verify_alone(str(path), Options())
    assert (found.races, found.silenced) == (0, 1)


def test_memory_that_has_two_names_is_not_called_clean(tmp_path: Path) -> None:
    """One kernel is passed a managed variable, another one names it: the host's IR does not say that it is one."""
    program = tmp_path / "app.cu"
    program.write_text(
        "__device__ __managed__ float both[64];\n"
        "__global__ void k1(float* p) { p[threadIdx.x] += 1; }\n"
        "__global__ void k2() { both[threadIdx.x] *= 2; }\n"
        "int main() {\n  cudaStream_t a, b;\n  cudaStreamCreate(&a);\n  cudaStreamCreate(&b);\n"
        "  k1<<<1, 64, 0, a>>>(both);\n  k2<<<1, 64, 0, b>>>();\n  cudaDeviceSynchronize();\n}\n"
    )
    with pytest.raises(VerificationError, match="__managed__"):
        verify_alone(str(program), Options())


def test_a_stream_that_is_not_known_is_no_race(tmp_path: Path) -> None:
    path = tmp_path / "alone.cu"
    path.write_text(
        ALONE.replace("int main() {", "int main(int n, char**) {").replace("lanes[0].done,", "lanes[n % 2].done,")
    )
    found = verify_alone(str(path), Options())
    assert found.races == 0
    assert {one.code for one in found.diagnostics} == {"K405"}


@pytest.mark.parametrize(("loops", "why"), [(DEEP, ""), (8, "more than 6 loops are in each other in main")])
def test_many_loops_around_a_launch_are_refused_at_once(loops: int, why: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.cu"
    kernel = "__global__ void k(float* x) { x[0] += 1; }\n"
    begins = "".join(f"for (int i{n} = 0; i{n} < c; i{n}++) {{ " for n in range(loops))
    path.write_text(
        f"{kernel}int main(int c, char**) {{ float* p; cudaMalloc(&p, 4); {begins}k<<<1, 1>>>(p);{'}' * loops} }}\n"
    )
    assert executed(str(path))[0].refused == why
