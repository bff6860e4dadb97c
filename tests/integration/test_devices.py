"""Streams are those of the device that is current: what compiles to that is accepted, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.options import Options
from kesco.proving import verify_files
from tests.integration.compiled import compile_and_keep

pytestmark = pytest.mark.usefixtures("toolchain")

FETCH = "  kesco = &kesco_streams();  // kesco: code not seen here may have changed the device\n"
PROGRAM = """#include <cstdlib>
__global__ void k(float* p) { p[threadIdx.x] += 1; }
static void pick(int d) { if (d < 4) cudaSetDevice(d); }
static void choose(int d) { pick(d); }
int main(int count, char**) {
  float *a, *b, *c, *d;
  cudaMalloc(&a, 1024); cudaMalloc(&b, 1024);
  if (cudaMalloc(&c, 1024)) { cudaDeviceReset(); exit(1); }
  if (cudaMalloc(&d, 1024)) { cudaDeviceReset(); return 1; }
  k<<<1, 256>>>(a); k<<<1, 256>>>(b);
  cudaDeviceSynchronize();
  CHANGE
  k<<<1, 256>>>(c); k<<<1, 256>>>(d);
  cudaDeviceSynchronize();
}
"""
CHANGES = [
    "if (count > 3) { cudaSetDevice(1); goto last; }\n  return 0;\nlast:",
    "cudaSetDevice(1); cudaDeviceSynchronize();",
    "cudaSetDevice(1);",
    "choose(count);",
    "if (count > 2) cudaSetDevice(1);",
    "for (int i = 0; i < count; ++i) pick(i);",
    "switch (count) { case 1: cudaSetDevice(1); break; default: break; }",
]


def problems(serial: Path, text: str) -> list[str]:
    """What the proof says of an output."""
    output = serial.with_name("output.cu")
    output.write_text(text, "utf-8")
    return [d.message for one in verify_files(str(serial), str(output), Options()) for d in one.problems]


@pytest.mark.parametrize("change", CHANGES)
def test_streams_that_are_not_fetched_again_are_refused(tmp_path: Path, change: str) -> None:
    serial = tmp_path / "app.cu"
    serial.write_text(PROGRAM.replace("CHANGE", change), "utf-8")
    text = compile_and_keep(serial).result.text.decode()
    assert text.count(FETCH) == 1
    assert problems(serial, text) == []
    said = problems(serial, text.replace(FETCH, ""))
    assert said == ["'kesco' is used, but the device may be another one than where it was fetched"]


def test_a_loop_that_changes_the_device_at_its_end(tmp_path: Path) -> None:
    serial = tmp_path / "app.cu"
    loop = "for (int i = 0; i < count; ++i) { k<<<1, 256>>>(c); k<<<1, 256>>>(d); pick(i); }"
    serial.write_text(PROGRAM.replace("CHANGE", loop), "utf-8")
    text = compile_and_keep(serial).result.text.decode()
    assert text.count("kesco = &kesco_streams();") > 1
    assert problems(serial, text) == []
    lines = [line for line in text.splitlines() if line.strip().startswith("kesco = &kesco_streams();")]
    for line in lines:
        assert any("the device" in one for one in problems(serial, text.replace(line + "\n", "", 1))), line


LATER = [
    "for (int i = 0; i < 3; ++i) k<<<1, 256>>>(c);\n  k<<<1, 256>>>(d);",
    "for (int i = 0; i < 3; ++i) { k<<<1, 256>>>(c); k<<<1, 256>>>(a); }\n  k<<<1, 256>>>(d);",
    "bool is = true; if (is) k<<<1, 256>>>(c);\n  k<<<1, 256>>>(d);",
    "bool is = true; if (is) { k<<<1, 256>>>(c); k<<<1, 256>>>(a); } else { k<<<1, 256>>>(b); }\n  k<<<1, 256>>>(d);",
]


@pytest.mark.parametrize("later", LATER)
def test_what_a_loop_has_fetched_does_not_count_behind_it(tmp_path: Path, later: str) -> None:
    """Though the region knows that it runs; the proof goes by the text."""
    serial = tmp_path / "app.cu"
    body = PROGRAM.replace("CHANGE", "elsewhere();").replace("k<<<1, 256>>>(c); k<<<1, 256>>>(d);", later)
    serial.write_text("void elsewhere();\n" + body, "utf-8")
    result = compile_and_keep(serial).result
    text = result.text.decode()
    assert text.count(FETCH.strip()) == 2
    assert problems(serial, text) == []


def test_a_stretch_that_begins_behind_a_macro_has_streams_for_all_of_it(tmp_path: Path) -> None:
    """Fetched in the loops once more, they would never be on one stream, however fast that is."""
    check = "#define CHECK(call) do { if ((call) != cudaSuccess) return 1; } while (0)\n"
    loop = "for (int i = 0; i < n; ++i) { k<<<1, 256>>>(a); k<<<1, 256>>>(b); } CHECK(cudaDeviceSynchronize());"
    body = f"CHECK(cudaDeviceSynchronize());\n {loop}"
    text = f"{check}void elsewhere();\n{PROGRAM.partition('int main')[0]}int main(int n, char**) {{ float *a, *b;"
    text += "cudaMalloc(&a, 1024); cudaMalloc(&b, 1024);\nfor (int r = 0; r < n; ++r) {\n elsewhere();\n"
    serial = tmp_path / "app.cu"
    serial.write_text(f"{text} {body}\n}}\nreturn 0; }}\n", "utf-8")
    written = compile_and_keep(serial).result.text.decode()
    assert "kesco = kesco_stretch(kesco, 0);" in written
    assert FETCH.strip() not in written


def test_behind_a_jump_over_it_streams_are_not_fetched(tmp_path: Path) -> None:
    """Fetched at the entry, and behind `cudaSetDevice` again: needed there, as the proof sees along every jump."""
    serial = tmp_path / "app.cu"
    source = (Path(__file__).parents[1] / "golden/goto_to_the_end/input.cu").read_text("utf-8")
    serial.write_text(source.replace("int main() {\n", "void unseen();\nint main() {\n  unseen();\n"), "utf-8")
    text = compile_and_keep(serial).result.text.decode()
    again = "  kesco = kesco_stretch(kesco, 0, false);\n"
    assert problems(serial, text) == []
    assert any("the device" in one for one in problems(serial, text.replace(again, "")))
    earlier = text.replace(again, "").replace(
        "  cudaError_t status = cudaSetDevice", again + "  cudaError_t status = cudaSetDevice"
    )
    assert any("the device" in one for one in problems(serial, earlier))
    jump, label = "  if (n == 7) goto Copies;\n  status = cudaMalloc(&device_a", "Copies:\n"
    copy, fence = "  status = cudaMemcpy(device_a", "  cudaEventRecord(kesco->tail[0]"
    serial.write_text(
        serial.read_text("utf-8").replace(jump.partition("\n")[2], jump).replace(copy, label + copy), "utf-8"
    )
    text = text.replace(jump.partition("\n")[2], jump).replace(fence, label + fence, 1)
    assert any("the device" in one for one in problems(serial, text))
    assert problems(serial, text.replace(again, "").replace(label, label + again)) == []
