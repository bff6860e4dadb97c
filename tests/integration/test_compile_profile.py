"""`kesco compile --profile`: what is chosen, refused and said, with profiles of known costs."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from integration.compiled import Compiled, compile_and_keep

from kesco.bench import costs as known
from kesco.check import Run, check
from kesco.diagnostics import Diagnostic
from kesco.errors import UsageError
from kesco.ir import kfikit, kprof
from kesco.ir.compilation import Compilation, FunctionResult
from kesco.ir.costs import Cost, Costs, Identity, Origin, Times
from kesco.ir.flow import SiteKind
from kesco.ir.kfikit import Kernel, Store, TaskProfile
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files

ROOT = Path(__file__).resolve().parent.parent.parent
MEASURED = known.read(ROOT / "workloads/costs.toml")
KERNELS = """\
__global__ void up(float* x, int n) { x[threadIdx.x] += n; }
__global__ void both(float* x, const float* y) { x[threadIdx.x] += y[threadIdx.x]; }
"""
FORK = (
    KERNELS
    + """\
int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  up<<<1, 32>>>(x, 1);
  up<<<1, 32>>>(y, 2);
  both<<<1, 32>>>(x, y);
  cudaDeviceSynchronize();
}
"""
)


def profile_of(source: Path, target: Path, times: dict[int | str, float], **shape: int) -> Path:
    """A profile of a file: microseconds of each kernel by its line, or by its name."""
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    costs = []
    for key, microseconds in times.items():
        lines = source.read_text().splitlines()
        name = key if isinstance(key, str) else lines[key - 1].partition("<<<")[0].strip()
        at = f"{source.name}:{key}" if isinstance(key, int) else ""
        block = shape.get("threads", 32)
        identity = Identity("kernel", name, (shape.get("blocks", 1), 1, 1), (block, 1, 1), 0, at)
        costs.append(Cost(identity, name, Times.of([round(microseconds * 1000)])))
    target.write_text(kprof.to_json(Costs.of(Origin(sources=((source.name, digest),)), costs)))
    return target


def compiled(
    tmp_path: Path, text: str, times: dict[int | str, float], options: Options | None = None, **shape: int
) -> Compilation:
    source = tmp_path / "app.cu"
    source.write_text(text)
    profile = profile_of(source, tmp_path / "run.kprof", times, **shape)
    with_profile = replace(options or Options(), strategy="critical_path", profile=str(profile))
    return compile_file(str(source), with_profile)


def only(result: Compilation) -> FunctionResult:
    (function,) = [one for one in result.functions if one.region.function == "main"]
    return function


def said(result: Compilation, code: str) -> list[Diagnostic]:
    return [one for one in result.diagnostics if one.code == code]


def test_a_rewrite_that_pays_is_made_and_explained(tmp_path: Path) -> None:
    result = compiled(tmp_path, FORK, {7: 500, 8: 500, 9: 100})
    (remark,) = said(result, "K210")
    assert remark.message == "'main': expected gain 80.3 %"  # 1100 µs become 600, and some more for launches
    times, path = (note.message for note in remark.notes)
    assert times.startswith("the model takes 1.12 ms serial, 61")
    assert times.endswith("µs on 2 streams")
    assert path == "critical path 602.4 µs: up#1 → both"
    assert remark.to_json()["data"] == remark.data
    assert remark.data is not None
    assert (remark.data["streams"], remark.data["measured"], remark.data["operations"]) == (2, 3, 3)
    assert only(result).schedule.streams == 2


def test_a_profile_of_tasks_prices_kernels_by_their_names_and_refuses_nothing(tmp_path: Path) -> None:
    source, profile = tmp_path / "app.cu", tmp_path / "tasks.kfikit"
    source.write_text(FORK)
    names = {"_Z2upPfi": 500_000, "_Z4bothPfPKf": 100_000}
    kernels = tuple(
        (number, Kernel(name, (1, 1, 1), (32, 1, 1), time=Times.of([time])))
        for number, (name, time) in enumerate(names.items(), 1)
    )
    profile.write_text(kfikit.to_json(Store("H200", "", (TaskProfile("app", kernels),))))
    result = compile_file(str(source), Options(profile=str(profile)))
    (remark,) = said(result, "K210")
    assert remark.data is not None
    assert (remark.data["streams"], remark.data["measured"], remark.data["operations"]) == (2, 3, 3)
    assert remark.data["serial_us"] == pytest.approx(1120, rel=0.02)  # up, up and both
    assert not said(result, "K532")
    short = tuple((number, replace(kernel, time=Times.of([1000]))) for number, kernel in kernels)
    profile.write_text(kfikit.to_json(Store("H200", "", (TaskProfile("app", short),))))
    assert only(compile_file(str(source), Options(profile=str(profile), force=True))).rewritten
    assert not said(compile_file(str(source), Options(profile=str(profile))), "K211")


def test_a_rewrite_that_cannot_pay_is_refused(tmp_path: Path) -> None:
    result = compiled(tmp_path, FORK, {7: 1, 8: 1, 9: 1})
    assert not result.changed
    (remark,) = said(result, "K211")
    assert remark.message.startswith("'main': expected gain")
    assert remark.message.endswith("%: left serial")
    assert remark.help == "--force to override"
    assert not said(result, "K204")  # it is said once
    forced = compiled(tmp_path, FORK, {7: 1, 8: 1, 9: 1}, Options(force=True))
    assert forced.changed
    assert only(forced).schedule.streams == 2


def test_kernels_that_fill_the_gpu_are_left_serial(tmp_path: Path) -> None:
    result = compiled(tmp_path, FORK, {7: 5000, 8: 5000, 9: 5000}, blocks=100_000, threads=1024)
    assert [one.code for one in result.diagnostics] == ["K211"]
    assert not result.changed


def test_what_was_not_measured_refuses_nothing(tmp_path: Path) -> None:
    """A branch that the run did not take may be the one that pays."""
    result = compiled(tmp_path, FORK, {7: 1, 8: 1})
    assert only(result).schedule.streams == 2
    (remark,) = said(result, "K210")
    assert any("2 of 3 operations were measured" in note.message for note in remark.notes)


def test_a_function_that_gains_nothing_for_another_reason_says_that(tmp_path: Path) -> None:
    chain = FORK.replace("up<<<1, 32>>>(y, 2);", "up<<<1, 32>>>(x, 2);")
    result = compiled(tmp_path, chain, {7: 1000, 8: 1000, 9: 1000})
    assert said(result, "K204")
    assert not said(result, "K211")


def test_another_version_of_the_file_is_matched_by_names(tmp_path: Path) -> None:
    source, other = tmp_path / "app.cu", tmp_path / "old" / "app.cu"
    other.parent.mkdir()
    other.write_text(FORK)
    source.write_text("// moved down\n\n" + FORK)
    profile = profile_of(other, tmp_path / "run.kprof", {7: 500, 9: 100})
    result = compile_file(str(source), Options(strategy="critical_path", profile=str(profile)))
    (stale,) = said(result, "K532")
    assert "changed since the profile was made" in stale.message
    expected = only(result).expected
    assert expected is not None
    assert expected.known
    assert expected.serial == pytest.approx(1100, rel=0.02)


def test_another_version_of_the_file_refuses_nothing(tmp_path: Path) -> None:
    source, other = tmp_path / "app.cu", tmp_path / "old" / "app.cu"
    other.parent.mkdir()
    other.write_text(FORK)
    source.write_text("// moved down\n\n" + FORK)
    profile = profile_of(other, tmp_path / "run.kprof", {7: 1, 9: 1})
    result = compile_file(str(source), Options(strategy="critical_path", profile=str(profile)))
    assert only(result).schedule.streams == 2
    assert not said(result, "K211")


def test_a_renamed_file_is_the_same_program(tmp_path: Path) -> None:
    source = tmp_path / "app.cu"
    source.write_text(FORK)
    profile = profile_of(source, tmp_path / "run.kprof", {7: 500, 8: 500, 9: 100})
    renamed = source.rename(tmp_path / "new.cu")
    result = compile_file(str(renamed), Options(strategy="critical_path", profile=str(profile)))
    expected = only(result).expected
    assert expected is not None
    assert expected.known
    assert not said(result, "K532")


def test_a_profile_of_another_program_is_refused(tmp_path: Path) -> None:
    other, source = tmp_path / "other.cu", tmp_path / "app.cu"
    other.write_text(FORK + "// other\n")
    source.write_text(FORK)
    profile = profile_of(other, tmp_path / "run.kprof", {7: 500})
    with pytest.raises(UsageError) as raised:
        compile_file(str(source), Options(strategy="critical_path", profile=str(profile)))
    assert [one.code for one in raised.value.diagnostics] == ["K531"]


def run(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "kesco", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize(("content", "code"), [("{}", "K530"), ('{"format": "kprof", "version": 9}', "K530")])
def test_a_bad_profile_leaves_nothing_behind(tmp_path: Path, content: str, code: str) -> None:
    source, profile, target = tmp_path / "app.cu", tmp_path / "run.kprof", tmp_path / "out.cu"
    source.write_text(FORK)
    profile.write_text(content)
    exit_code, text = run("compile", str(source), "-o", str(target), "--profile", str(profile))
    assert exit_code == 2
    assert f"[{code}]" in text
    assert "Traceback" not in text
    assert not target.exists()


def test_the_command_takes_the_strategy_that_knows_costs(tmp_path: Path) -> None:
    source, target = tmp_path / "app.cu", tmp_path / "out.cu"
    source.write_text(FORK)
    profile = profile_of(source, tmp_path / "run.kprof", {7: 500, 8: 500, 9: 100})
    more = ("--profile", str(profile), "--diagnostics", "json")
    exit_code, text = run("compile", str(source), "-o", str(target), *more)
    assert exit_code == 0
    (remark,) = json.loads(text)
    assert (remark["code"], remark["data"]["streams"], remark["data"]["critical_path"]) == ("K210", 2, ["up#1", "both"])
    again = run("compile", str(source), "-o", str(target), *more, "--strategy", "kesco")
    assert again[0] == 0
    assert json.loads(again[1])[0]["code"] == "K210"  # the gain is said of any strategy


URGENT = (
    KERNELS
    + """\
int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  up<<<100000, 1024>>>(x, 1);
  up<<<1, 32>>>(y, 2);
  up<<<1, 32>>>(y, 3);
  up<<<1, 32>>>(y, 4);
  cudaDeviceSynchronize();
}
"""
)


def urgent(tmp_path: Path, macros: str = "") -> Compiled:
    """A kernel that fills the GPU, and beside it a chain that takes longer and leaves room."""
    source = tmp_path / "app.cu"
    source.write_text(URGENT.replace("int main", f"{macros}int main"))
    line = 7 + macros.count("\n")
    big = profile_of(source, tmp_path / "big.kprof", {line: 2000}, blocks=100_000, threads=1024)
    small = profile_of(source, tmp_path / "small.kprof", dict.fromkeys((line + 1, line + 2, line + 3), 1500))
    both = tmp_path / "run.kprof"
    both.write_text(kprof.to_json(kprof.read(big) + kprof.read(small)))
    return compile_and_keep(source, Options(strategy="critical_path", profile=str(both)))


def test_a_chain_beside_a_kernel_that_fills_the_gpu_is_urgent(tmp_path: Path) -> None:
    outcome = urgent(tmp_path)
    function = outcome.function("main")
    stream = {function.region.sites[n].span.line: s for n, s in function.schedule.stream_of}
    assert stream[8] == stream[9] == stream[10] != stream[7]
    assert function.schedule.urgent == (stream[8],)
    flags = ", ".join("true" if one == stream[8] else "false" for one in range(2))
    text = outcome.result.text.decode()
    assert f"const bool urgent[2] = {{{flags}}};" in text
    assert "cudaStreamCreateWithPriority(&kesco.stream[i], cudaStreamDefault, urgent[i] ? highest : 0)" in text
    assert function.expected is not None
    assert function.expected.concurrent < 0.8 * function.expected.other


def test_macros_with_the_names_of_the_priorities_are_put_away(tmp_path: Path) -> None:
    names = ("urgent", "highest", "lowest", "cudaDeviceGetStreamPriorityRange")
    outcome = urgent(tmp_path, "".join(f"#define {name} nothing\n" for name in names))
    text = outcome.result.text.decode()
    assert all(f'#pragma push_macro("{name}")' in text for name in names)
    assert outcome.refuses(text.split("\n")) == ""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("urgent[i] ? highest : 0", "urgent[i] ? lowest : 0"),
        ("cudaStreamDefault, urgent", "cudaStreamNonBlocking, urgent"),
        ("const bool urgent[2] = {", "const bool urgent[2] = {!"),
        ("  int lowest = 0, highest = 0;\n", "  int lowest = 0, highest = 0;\n  kesco.stream[0] = nullptr;\n"),
    ],
)
def test_a_prologue_with_other_priorities_is_refused(tmp_path: Path, before: str, after: str) -> None:
    outcome = urgent(tmp_path)
    text = outcome.result.text.decode()
    assert before in text
    assert outcome.refuses(text.split("\n")) == ""
    assert "prologue" in outcome.refuses(text.replace(before, after).split("\n"))


def test_urgent_streams_run_without_a_race(tmp_path: Path) -> None:
    """The output with priorities, in a dry run, and compiled by nvcc where there is one."""
    outcome = urgent(tmp_path)
    target = tmp_path / "out.cu"
    target.write_bytes(outcome.result.text)
    report = check(str(target), Run(), Options())
    assert (report.races, report.possible, report.kernels) == (0, 0, 4)
    nvcc = outcome.session.toolchain.nvcc
    if nvcc is not None:
        includes = [f"-I{one}" for one in outcome.session.toolchain.cuda_include]
        command = [nvcc, "-std=c++17", "-arch=sm_90", *includes, "-c", target, "-o", tmp_path / "out.o"]
        subprocess.run(command, check=True, timeout=120)


LOOP = (
    KERNELS
    + """\
int main() {
  float *x, *y;
  cudaMalloc(&x, 4096);
  cudaMalloc(&y, 4096);
  for (int i = 0; i < 1000; ++i) {
    up<<<1, 32>>>(x, 1);
    up<<<1, 32>>>(y, 2);
    both<<<1, 32>>>(x, y);
    cudaDeviceSynchronize();
  }
}
"""
)


@pytest.mark.parametrize("emit", ["graph", "auto"])
def test_graphs_are_not_refused(tmp_path: Path, emit: str) -> None:
    """At such times streams gain nothing and graphs do: the model is not asked about them."""
    times: dict[int | str, float] = {8: 1, 9: 1, 10: 1}
    assert not compiled(tmp_path, LOOP, times).changed
    result = compiled(tmp_path, LOOP, times, Options(emit=emit))
    assert only(result).plan.replays
    assert only(result).expected is None
    assert not said(result, "K211")


COPIES = (
    KERNELS
    + """\
int main() {
  float *x, *y, host[1 << 18];
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  up<<<1, 32>>>(x, 1);
  cudaMemcpy(y, host, sizeof host, cudaMemcpyHostToDevice);
  up<<<1, 32>>>(y, 2);
  cudaDeviceSynchronize();
}
"""
)


def test_moved_copies_are_not_refused(tmp_path: Path) -> None:
    """They keep the host for a part of their time: the model does not know them."""
    result = compiled(tmp_path, COPIES, {8: 1, 10: 1}, Options(copies="move"))
    assert only(result).rewritten
    assert only(result).expected is None
    assert only(result).schedule.streams == 2


def test_the_trial_at_run_time_stays(tmp_path: Path) -> None:
    """What the model thinks pays is still tried against one stream where it runs again and again."""
    result = compiled(tmp_path, LOOP, {8: 100, 9: 100, 10: 50})
    plain = compile_file(str(tmp_path / "app.cu"), Options())
    assert only(result).plan.stretches == only(plain).plan.stretches != ()
    assert b"kesco_stretch(kesco, 0)" in result.text


def test_without_a_profile_nothing_is_refused_or_expected(tmp_path: Path) -> None:
    source = tmp_path / "app.cu"
    source.write_text(FORK)
    result = compile_file(str(source), Options(strategy="critical_path"))
    assert only(result).rewritten
    assert only(result).expected is None
    assert not [one for one in result.diagnostics if one.code in ("K210", "K211")]


def test_an_estimate_knows_loops_and_constant_shapes(tmp_path: Path) -> None:
    """The kernel with a loop gets a stream, the three without one share the other."""
    source = tmp_path / "app.cu"
    source.write_text(
        """\
__global__ void slow(float* x, int n) { for (int i = 0; i < n; ++i) for (int j = 0; j < i; ++j) x[j] = x[i] + x[j]; }
__global__ void quick(float* x) { x[threadIdx.x] += 1; }
int main() {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 4096); cudaMalloc(&b, 4096); cudaMalloc(&c, 4096); cudaMalloc(&d, 4096);
  slow<<<64, 1024>>>(a, 1000);
  quick<<<64, 1024>>>(b);
  quick<<<64, 1024>>>(c);
  quick<<<64, 1024>>>(d);
}
"""
    )
    function = only(compile_file(str(source), Options(strategy="critical_path", streams=2)))
    stream = {function.region.sites[n].label: s for n, s in function.schedule.stream_of}
    assert stream["slow"] not in (stream["quick#1"], stream["quick#2"], stream["quick#3"])
    plain = only(compile_file(str(source), Options(streams=2)))
    stream = {plain.region.sites[n].label: s for n, s in plain.schedule.stream_of}
    assert stream["slow"] == stream["quick#2"]  # the distributor counts operations


# ---- the workloads --------------------------------------------------------------------------------------------------

# streams, waits and events with the measured costs of about 1 GB in blocks of 32 threads
COUNTS = {
    "vec": (2, 1, 1),
    "bs": (10, 0, 0),
    "img": (3, 3, 3),  # the distributor takes 4 and 4: one stream less is as fast
    "ml": (2, 1, 1),
    "hits": (2, 4, 4),
    "dl": (2, 1, 1),
    "m1": (6, 4, 4),
    "m2": (12, 11, 11),
}


def profiled(workload: str, block: int, target: Path) -> Path:
    """The profile that a run would give if each kernel took what Nsight Compute measured."""
    source = ROOT / "workloads" / workload / "serial.cu"
    setting = f"{workload}/1gb/{block}"
    costs = []
    for site in only(compile_file(str(source), Options())).region.sites:
        if site.kind is SiteKind.KERNEL:
            one, name = MEASURED.of(setting, site.label), site.label.partition("#")[0]
            at = f"serial.cu:{site.span.line}"
            identity = Identity("kernel", name, (one.blocks, 1, 1), (one.threads, 1, 1), 0, at)
            times = Times.of([round(one.microseconds * 1000)] * 10)
            costs.append(Cost(identity, name, times, None, one.registers, one.shared, one.sm, one.memory))
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    target.write_text(kprof.to_json(Costs.of(Origin("H200", sources=(("serial.cu", digest),)), costs)))
    return target


THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
SETTINGS = [
    (workload, block)
    for workload in COUNTS
    for block in ((32, 256) if THOROUGH else (32,))
    if THOROUGH or workload == "ml"
    if f"{workload}/1gb/{block}" in MEASURED.settings
]


@pytest.mark.thorough
@pytest.mark.parametrize(("workload", "block"), SETTINGS)
def test_a_workload_with_its_measured_costs(workload: str, block: int, tmp_path: Path) -> None:
    profile = profiled(workload, block, tmp_path / "run.kprof")
    source = ROOT / "workloads" / workload / "serial.cu"
    options = Options(strategy="critical_path", profile=str(profile), copies="keep")
    result = compile_file(str(source), options)
    function = only(result)
    assert function.rewritten
    assert (function.schedule.streams, len(function.plan.waits), len(function.plan.events)) == COUNTS[workload]
    expected = function.expected
    assert expected is not None
    assert expected.known
    assert expected.concurrent <= expected.other * 1.0001  # the distributor's schedule
    assert expected.critical <= expected.concurrent < expected.serial
    if workload == "vec":
        assert compile_file(str(source), options).text == result.text
        target = tmp_path / "out.cu"
        target.write_bytes(result.text)
        with_headers = Options(flags=("-I", str(source.parent)))
        assert all(not one.problems for one in verify_files(str(source), str(target), with_headers))
