"""Work queues: who asks for more than eight, and when a program that does so leaves the environment alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.check import Run, observe, prepare
from kesco.options import Options
from kesco.pipeline import compile_file

pytestmark = pytest.mark.usefixtures("toolchain")

WORKLOADS = Path(__file__).resolve().parents[2] / "workloads"
ASKS = b"CUDA_DEVICE_MAX_CONNECTIONS"
SOURCE = """\
#include <cstdio>
#include <cstdlib>
__global__ void scale(float* x) { x[threadIdx.x] *= 2; }
int main(int, char** arguments) {
  float *x[%d], *h;
  cudaMallocHost(&h, 64 * 128 * sizeof(float));
  for (int i = 0; i < %d; ++i) cudaMalloc(&x[i], 64 * sizeof(float));
  for (int i = 0; i < %d; ++i) {
    %s
    scale<<<1, 64>>>(x[i]);
  }
  cudaDeviceSynchronize();
  const char* queues = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");  // then the program minds them itself
  std::FILE* said = std::fopen(arguments[1], "w");
  std::fputs(queues != nullptr ? queues : "none", said);
  std::fclose(said);
  return 0;
}
"""
COPY = "cudaMemcpyAsync(x[i], h + 64 * i, 64 * sizeof(float), cudaMemcpyHostToDevice);"


def output(folder: Path, many: int, copy: str, reads: bool = False) -> bytes:
    text = SOURCE if reads else SOURCE.replace('std::getenv("CUDA_DEVICE_MAX_CONNECTIONS")', "arguments[1]")
    (folder / "program.cu").write_text(text % (many, many, many, copy))
    return compile_file(str(folder / "program.cu"), Options()).text


@pytest.mark.parametrize(
    ("many", "copy", "reads", "asks"),
    [(12, COPY, False, True), (6, COPY, False, False), (12, "", False, False), (12, COPY, True, False)],
)
def test_who_asks(tmp_path: Path, many: int, copy: str, reads: bool, asks: bool) -> None:
    text = output(tmp_path, many, copy, reads)
    assert b"kesco->stream" in text
    assert (ASKS in text.partition(b"// ---- kesco: end")[0]) == asks


@pytest.mark.parametrize(("name", "asks"), [("m2", True), ("m1", False)])  # 13 streams, and seven
def test_prefetches_ask_too(name: str, asks: bool) -> None:
    text = compile_file(str(WORKLOADS / name / "managed.cu"), Options(prefetch=True)).text
    assert (ASKS in text) == asks


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory):  # type: ignore[no-untyped-def]
    """What the program finds in its environment behind its own beginning, for an environment."""
    folder = tmp_path_factory.mktemp("queues")
    plain = output(folder, 12, COPY)
    assert plain.count(b"= arguments[1];") == 1
    reads = b'= std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");'
    (folder / "asks.cu").write_bytes(plain.replace(b"= arguments[1];", reads))
    dry = prepare(str(folder / "asks.cu"), (), Options(), folder)

    def found(patch: pytest.MonkeyPatch, **environment: str) -> str:
        patch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
        patch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(folder / "none"))
        for name, value in environment.items():
            patch.setenv(name, value)
        report = observe(dry, Run((str(folder / "said"),)))
        assert report.diagnostics == ()
        return (folder / "said").read_text()

    return found


def test_more_are_asked_for(program, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    assert program(monkeypatch) == "32"


def test_what_somebody_said_is_kept(program, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    assert program(monkeypatch, CUDA_DEVICE_MAX_CONNECTIONS="2") == "2"


def test_clients_of_mps_do_not_ask(program, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "control").touch()
    assert program(monkeypatch, CUDA_MPS_PIPE_DIRECTORY=str(tmp_path)) == "none"
