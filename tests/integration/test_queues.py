"""Work queues: who asks for more than eight, and when a program that does so leaves the environment alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.check import Run, observe, prepare
from kesco.errors import InputError
from kesco.merging.specs import parse
from kesco.merging.together import merge
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


OTHER = """\
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
int main() {
  float* x;
  cudaMalloc(&x, 64 * sizeof(float));
  fill<<<1, 64>>>(x);
  return cudaDeviceSynchronize();
}
"""


def merged(folder: Path, one: bytes) -> bytes:
    """Twice a program of many streams, and one of a single stream."""
    (folder / "one.cu").write_bytes(one)
    (folder / "other.cu").write_text(OTHER)
    words = [f"{folder}/{name}.cu={priority}" for name, priority in (("one", 3), ("other", 2), ("one", 1))]
    return merge(parse(words), Options()).text


@pytest.mark.thorough
def test_a_merged_program_asks_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything else of it, in the place of each of its programs."""
    output(tmp_path, 12, COPY)
    text = merged(tmp_path, (tmp_path / "program.cu").read_bytes())
    assert text.count(b"setenv(") == text[: text.index(b"struct Stream")].count(b"setenv(") == 1
    (tmp_path / "all.cu").write_bytes(
        text.replace(b"= arguments[1];", b'= std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");')
    )
    (tmp_path / "built").mkdir()
    dry = prepare(str(tmp_path / "all.cu"), (), Options(), tmp_path / "built")
    monkeypatch.delenv("CUDA_DEVICE_MAX_CONNECTIONS", raising=False)
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path / "none"))
    report = observe(dry, Run((str(tmp_path / "first"), "--", "--", str(tmp_path / "last"))))
    assert report.diagnostics == ()
    assert [(tmp_path / name).read_text() for name in ("first", "last")] == ["32", "32"]


@pytest.mark.thorough
def test_what_kesco_wrote_is_merged_to_the_same(tmp_path: Path) -> None:
    compiled = output(tmp_path, 12, COPY)
    assert ASKS in compiled
    source = merged(tmp_path, (tmp_path / "program.cu").read_bytes())
    assert merged(tmp_path, compiled).count(b"setenv(") == 1
    assert merged(tmp_path, compiled) == source


@pytest.mark.parametrize("asks", [b'setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16", 0)', b"unsetenv(0)"])
def test_what_the_program_itself_asks_for_is_refused(tmp_path: Path, asks: bytes) -> None:
    """Also where somebody has changed what kesco wrote."""
    compiled = output(tmp_path, 12, COPY)
    with pytest.raises(InputError) as caught:
        merged(tmp_path, compiled.replace(b'setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0)', asks))
    assert [d.code for d in caught.value.diagnostics] == ["K121"]


def test_a_merged_program_that_minds_them_itself_does_not_ask(tmp_path: Path) -> None:
    many = output(tmp_path, 12, COPY)
    (tmp_path / "minds.cu").write_text(SOURCE % (1, 1, 1, COPY))
    (tmp_path / "many.cu").write_bytes(many)
    assert b"setenv(" in many
    assert b"setenv(" not in merge(parse([f"{tmp_path}/many.cu=3", f"{tmp_path}/minds.cu=2"]), Options()).text
