"""Tasks in whole programs: what is told about them, options, and that the proof does not rest on barriers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.compiled import compile_and_keep
from integration.test_compile_profile import profile_of

from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.proving import verify_files
from kesco.report.explain import explain
from kesco.report.graph import draw

pytestmark = pytest.mark.usefixtures("toolchain")

KERNELS = """\
__global__ void up(float* x) { x[threadIdx.x] += 1.0f; }
__global__ void down(float* x, int outputs = 1, int priority = 12) { x[threadIdx.x] -= 1.0f; }
"""
ODD = f"""\
{KERNELS}
static void both(float* x) {{ up<<<1, 32>>>(x); }}
int main() {{
  float *a, *b;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
#pragma kesco task priority(3) name(first)
  both(a);
#pragma kesco task priority(2) name(second)
  both(b);
#pragma kesco task priority(1) name(idle)
  {{ int n = 0; ++n; }}
  down<<<1, 32>>>(b);
  cudaDeviceSynchronize();
}}
"""
LOW = "#pragma kesco task priority(1) name(low)"
PLAIN = f"""\
{KERNELS}
int main() {{
  float *a, *b, *c;
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  cudaMalloc(&c, 4096);
  for (int i = 0; i < 100; ++i) {{
#pragma kesco task priority(3) name(high)
    {{
      up<<<1, 32>>>(a);
      up<<<1, 32>>>(b);
      up<<<1, 32>>>(a);
    }}
{LOW}
    up<<<1, 32>>>(c);
    cudaDeviceSynchronize();
  }}
}}
"""


def test_what_is_odd_is_told(tmp_path: Path) -> None:
    source = tmp_path / "odd.cu"
    source.write_text(ODD)
    result = compile_file(str(source), Options())
    found = {d.code: d.message for d in result.diagnostics}
    assert found["K215"] == "task 'idle' gives the device nothing to do"
    assert found["K216"] == "several tasks call 'both': its operations count as those of task 'first'"
    assert found["K217"] == "'down' has priority 12, which is none: it makes no task"


def test_options_and_the_proof(tmp_path: Path) -> None:
    source = tmp_path / "plain.cu"
    source.write_text(PLAIN)
    compiled = compile_and_keep(source, Options(zone_age=4))
    text = compiled.result.text.decode()
    assert "const int rank[3] = {0, 0, 1};" in text
    assert "kesco_stretch" not in text  # one stream would keep no priorities
    barriers = [
        n for n, line in enumerate(compiled.lines) if re.search(r"kesco: .* \(zone of priority 3 before 1\)", line)
    ]
    assert len(barriers) == 2
    assert not compiled.refuses([line for n, line in enumerate(compiled.lines) if n not in barriers])
    (main,) = (f for f in compiled.result.functions if f.rewritten)
    assert "zone of priority 3 before 1" in explain(compiled.result)
    assert main.schedule.strategy == "zones-fair"
    for form in ("svg", "dot", "json"):
        assert draw((main,), form).count("zone of priority 3 before 1") >= 2

    def lines(options: Options) -> list[str]:
        return [x for x in compile_file(str(source), options).text.decode().splitlines() if "zone of" in x]

    assert lines(Options()) == []
    assert len(lines(Options(zone_age=1))) == 1
    assert len(lines(Options(strategy="zones"))) == 1
    other = compile_file(str(source), Options(strategy="kesco")).text.decode()
    assert "const int rank" not in other
    assert "kesco_stretch" in other
    plain = tmp_path / "unmarked.cu"
    plain.write_text(re.sub("#pragma kesco.*\n", "\n", PLAIN))
    untouched = compile_file(str(plain), Options(strategy="zones-fair")).text
    assert untouched == compile_file(str(plain), Options()).text


def test_the_output_can_be_proven_again(tmp_path: Path) -> None:
    """Lines and the prologue go above a task's pragma, so that it still marks the same."""
    source = Path(__file__).parent.parent / "golden/tasks_of_functions/input.cu"
    output = tmp_path / "async.cu"
    text = compile_file(str(source), Options()).text
    output.write_bytes(text)
    assert b"#pragma kesco task priority(7)\nstatic void high(" in text
    (main,) = verify_files(str(source), str(output), Options())
    assert main.problems == ()


def test_a_profile_says_who_is_held(tmp_path: Path) -> None:
    """What fills the GPU is held behind what fills it, unless it is so short that it would starve."""
    source = tmp_path / "app.cu"
    source.write_text(PLAIN.replace("for (int i = 0; i < 100; ++i) {", "{"))
    high = [n for n, line in enumerate(source.read_text().splitlines(), 1) if re.search(r"up<<<.*>>>\([ab]\)", line)]
    low = high[-1] + 3
    for blocks, time, held in ((132 * 8, 100.0, 1), (1, 100.0, 0), (132 * 8, 10.0, 0)):
        times: dict[int | str, float] = {**dict.fromkeys(high, 100.0), low: time}
        profile = profile_of(source, tmp_path / "run.kprof", times, blocks=blocks, threads=256)
        text = compile_file(str(source), Options(profile=str(profile), force=True)).text.decode()
        assert text.count("(zone of priority 3 before 1)") == held
        assert "const int rank" in text
