"""Hosts that use more of C++ than the paper oracle knows: kesco's output prints what the serial program prints."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest
from integration.compiled import compile_and_keep
from preferring import the_ir
from property.hosts import HEAD, options_of, programs_of, text_of
from property.native import disagreements

from kesco.toolchain.discover import discover

pytestmark = pytest.mark.usefixtures("toolchain")

BODY = """int main(int, char**) {
  float *a, *b, h[32];
  cudaMalloc(&a, 4096);
  cudaMalloc(&b, 4096);
  STREAM;
  k_w<<<1, 32>>>(a);
  k_rw<<<1, 32, 0, s>>>(a, b);
  WAIT;
  cudaMemcpy(h, b, 128, cudaMemcpyDeviceToHost);
  show(h);
  return 0;
}
"""
SERIAL = BODY.replace("STREAM", "cudaStream_t s = nullptr").replace("WAIT", "cudaDeviceSynchronize()")
APART = SERIAL.replace("s = nullptr", "s; cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking)")


def test_the_judge_sees_what_nothing_orders(tmp_path: Path) -> None:
    found = dict(disagreements(discover(), HEAD + SERIAL, HEAD + APART, ["main"], tmp_path))
    assert "but" in found["main"]


@pytest.mark.parametrize(("file", "ir"), [(62, True), (112, False)])
def test_hosts_print_the_same(tmp_path: Path, file: int, ir: bool) -> None:
    programs = programs_of(file)[:1]
    path = tmp_path / "input.cu"
    path.write_text(text_of(programs))
    with the_ir() if ir else nullcontext():
        one = compile_and_keep(path, options_of(file))
    assert one.rewritten
    texts = one.result.source.decode(), one.result.text.decode()
    names = [each.name for each in programs]
    assert list(disagreements(one.session.toolchain, *texts, names, tmp_path)) == []
