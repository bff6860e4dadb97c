"""The command line: one message and a documented exit code for all that may go wrong, and nothing is ever lost."""

from __future__ import annotations

import errno
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from kesco import __version__, pipeline
from kesco.cli import main
from kesco.toolchain.model import Toolchain

SOURCE = """\
#include <cuda_runtime.h>

__global__ void fill(float* out, float value, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = value;
}

__global__ void add(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = a[i] + b[i];
}

int main() {
  const int n = 1 << 16;
  float *x, *y, *z;
  cudaMalloc(&x, n * sizeof(float));
  cudaMalloc(&y, n * sizeof(float));
  cudaMalloc(&z, n * sizeof(float));
  fill<<<64, 256>>>(x, 1.0f, n);
  fill<<<64, 256>>>(y, 2.0f, n);
  add<<<64, 256>>>(x, y, z, n);
  cudaDeviceSynchronize();
  return 0;
}
"""
ADD = SOURCE.splitlines().index("  add<<<64, 256>>>(x, y, z, n);") + 1

pytestmark = pytest.mark.usefixtures("toolchain")


class Folder:
    """A working folder with ``app.cu``, and the command line run in it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.write("app.cu", SOURCE.encode())

    def write(self, name: str, data: bytes) -> Path:
        (self.path / name).write_bytes(data)
        return self.path / name

    def read(self, name: str) -> bytes:
        return (self.path / name).read_bytes()

    @property
    def names(self) -> set[str]:
        return {one.name for one in self.path.iterdir()}

    def run(self, *arguments: str) -> tuple[int, str]:
        """The exit code and what was said; names are looked up in the folder."""
        done = CliRunner().invoke(main, arguments)
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.output

    def refuses(self, code: int, *arguments: str) -> str:
        """What was said when it failed with that code; no file came, went or changed."""
        before = {one: one.read_bytes() for one in self.path.iterdir() if one.is_file()}
        got, said = self.run(*arguments)
        assert got == code, said
        assert {one: one.read_bytes() for one in self.path.iterdir() if one.is_file()} == before
        assert "Traceback" not in said
        return said


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.chdir(tmp_path)
    return Folder(tmp_path)


@pytest.fixture(scope="module")
def proven(tmp_path_factory: pytest.TempPathFactory, toolchain: Toolchain) -> bytes:
    """The output for ``app.cu``."""
    place = tmp_path_factory.mktemp("proven")
    (place / "app.cu").write_text(SOURCE)
    done = CliRunner().invoke(main, ("compile", str(place / "app.cu")))
    assert done.exit_code == 0, done.output
    assert {one.name for one in place.iterdir()} == {"app.cu", "app_async.cu"}
    return (place / "app_async.cu").read_bytes()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch, proven: bytes) -> None:
    """A compiler that knows the answer at once, for tests of what comes after it."""

    def known(path: str, *_: object) -> pipeline.Compilation:
        return pipeline.Compilation(path, Path(path).read_bytes(), proven, (), ())

    monkeypatch.setattr(pipeline, "compile_file", known)


# ---- what it does when all is well ----------------------------------------------------------------------------------


def test_a_file_is_compiled_and_a_summary_is_printed(folder: Folder, proven: bytes) -> None:
    code, said = folder.run("compile", "app.cu", "-o", "out.cu")
    assert code == 0
    assert folder.read("out.cu") == proven
    assert "out.cu: 'main': 3 operations on 2 streams" in said
    assert folder.names == {"app.cu", "out.cu"}


def test_a_folder_as_target_takes_the_sources_name(folder: Folder, quick: None, proven: bytes) -> None:
    (folder.path / "sub").mkdir()
    assert folder.run("compile", "app.cu", "-o", "sub")[0] == 0
    assert folder.read("sub/app.cu") == proven


def test_an_old_target_is_replaced_and_keeps_its_mode(folder: Folder, quick: None, proven: bytes) -> None:
    folder.write("out.cu", b"old").chmod(0o640)
    assert folder.run("compile", "app.cu", "-o", "out.cu")[0] == 0
    assert folder.read("out.cu") == proven
    assert (folder.path / "out.cu").stat().st_mode & 0o777 == 0o640


def test_a_link_is_followed_and_stays_a_link(folder: Folder, quick: None, proven: bytes) -> None:
    folder.write("real.cu", b"old")
    (folder.path / "link.cu").symlink_to("real.cu")
    assert folder.run("compile", "app.cu", "-o", "link.cu")[0] == 0
    assert (folder.path / "link.cu").is_symlink()
    assert folder.read("real.cu") == proven


def test_a_device_is_written_to_and_not_replaced(folder: Folder, quick: None, proven: bytes) -> None:
    pipe = folder.path / "pipe.cu"
    os.mkfifo(pipe)
    reader = subprocess.Popen(["cat", str(pipe)], stdout=subprocess.PIPE)
    assert folder.run("compile", "app.cu", "-o", "pipe.cu")[0] == 0
    assert reader.communicate(timeout=30)[0] == proven
    assert pipe.is_fifo()


def test_standard_output_gets_the_text_and_nothing_else(folder: Folder, proven: bytes) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kesco", "compile", "app.cu", "-o", "-"],
        capture_output=True,
        check=False,
        env=environment(),
    )
    assert (done.returncode, done.stdout) == (0, proven)
    assert b"'main'" in done.stderr


def test_quiet_says_nothing(folder: Folder) -> None:
    assert folder.run("compile", "app.cu", "-o", "out.cu", "--quiet") == (0, "")


def test_flags_after_two_dashes_reach_the_compiler(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.replace("256>>>(x", "BLOCK>>>(x").encode())
    assert "BLOCK" in folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert folder.run("compile", "app.cu", "-o", "out.cu", "--", "-DBLOCK=128")[0] == 0
    assert b"fill<<<64, BLOCK, 0, kesco" in folder.read("out.cu")


def test_dump_and_time(folder: Folder) -> None:
    code, said = folder.run("compile", "app.cu", "-o", "out.cu", "--dump", "regions", "--time")
    assert code == 0
    assert "# regions\nregion main" in said
    assert re.search(r"\d+ ms  program\n", said)


def test_no_launches_no_change(folder: Folder) -> None:
    for data in (b"int main() { return 0; }\n", b"", b"\n", b"// nothing here"):
        folder.write("plain.cu", data)
        code, said = folder.run("compile", "plain.cu", "-o", "out.cu")
        assert code == 0
        assert folder.read("out.cu") == data
        assert "remark[K201]: no kernel is launched in this file: copied unchanged" in said
        assert "out.cu: unchanged" in said


def test_its_own_output_is_left_alone(folder: Folder, proven: bytes) -> None:
    folder.write("done.cu", proven)
    code, said = folder.run("compile", "done.cu", "-o", "again.cu")
    assert code == 0
    assert folder.read("again.cu") == proven
    assert "K206" in said


def _crlf(data: bytes) -> bytes:
    return data.replace(b"\n", b"\r\n")


LATIN = SOURCE.encode().replace(b"int main", b'// caf\xe9 \xff\xfe\nstatic const char* s = "\xe9";\nint main')
LATIN = LATIN.replace(b"  fill<<<64, 256>>>(y", b"  /* \xe9\xe8 */\n  fill<<<64, 256>>>(y")


@pytest.mark.parametrize(
    ("data", "back"),
    [
        pytest.param(LATIN, bytes, id="not UTF-8"),
        pytest.param(_crlf(SOURCE.encode()), lambda text: text.replace(b"\r\n", b"\n"), id="CRLF"),
        pytest.param(b"\xef\xbb\xbf" + SOURCE.encode(), bytes, id="byte order mark"),
        pytest.param(SOURCE.encode().rstrip(b"\n"), bytes, id="no newline at the end"),
        pytest.param(
            SOURCE.encode().replace(b"int main", b"// " + b"x" * 2_000_000 + b"\nint main"), bytes, id="huge line"
        ),
    ],
)
def test_odd_bytes_stay_as_they_are(folder: Folder, proven: bytes, data: bytes, back: Callable[[bytes], bytes]) -> None:
    folder.write("odd.cu", data)
    code, said = folder.run("compile", "odd.cu", "-o", "out.cu")
    assert code == 0, said
    text = folder.read("out.cu")
    assert text != data
    if b"\r" in data:
        assert text.count(b"\n") == text.count(b"\r\n"), "a line ends in another way than all others"
    assert text.endswith(data[-20:])
    # Each line of the input is still there, in order, but for the three launches, which state their streams now.
    stated = re.sub(rb", 0, kesco(?:\.|->)stream\[\d\]>>>", b">>>", back(text)).split(b"\n")
    left = iter(stated)
    missing = [line for line in back(data).split(b"\n") if line not in left]
    assert missing == []
    inserted = len(stated) - len(back(data).split(b"\n"))
    assert inserted == len(proven.split(b"\n")) - len(SOURCE.split("\n"))


def test_two_runs_give_the_same_bytes(folder: Folder, repository: Path) -> None:
    source = repository / "workloads/hits/serial.cu"
    texts = set()
    for seed in ("0", "4242"):
        command = [sys.executable, "-m", "kesco", "compile", str(source), "-o", f"{seed}.cu", "--quiet"]
        subprocess.run(command, check=True, env=environment() | {"PYTHONHASHSEED": seed})
        texts.add(folder.read(f"{seed}.cu"))
    assert len(texts) == 1


# ---- what it does when something is wrong ---------------------------------------------------------------------------


def test_a_missing_file(folder: Folder) -> None:
    said = folder.refuses(3, "compile", "nothing.cu", "-o", "out.cu")
    assert said.startswith("kesco: error[K102]: cannot read nothing.cu: No such file or directory\n  help: ")


def test_a_folder_instead_of_a_file(folder: Folder) -> None:
    (folder.path / "sub.cu").mkdir()
    assert "error[K102]: sub.cu is a directory" in folder.refuses(2, "compile", "sub.cu", "-o", "out.cu")


def test_an_error_in_the_host_code_is_clangs_own(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.replace("return 0", "return zero").encode())
    folder.write("out.cu", b"precious")
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    line = SOURCE.splitlines().index("  return 0;") + 1
    assert f"app.cu:{line}:10: error[K100]: use of undeclared identifier 'zero'\n" in said
    assert f"   {line} |   return zero;\n      |          ^" in said


def test_an_error_in_a_kernel_is_clangs_own(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.replace("= value;", "= valu;").encode())
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert "app.cu:5:23: error[K100]: use of undeclared identifier 'valu'" in said
    assert said.count("valu'") == 1, "one message for one error"


def test_all_errors_in_one_run(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.replace("return 0", "return zero").replace("= value;", "= valu;").encode())
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert "'zero'" in said
    assert "'valu'" in said


def test_a_missing_header(folder: Folder) -> None:
    folder.write("app.cu", b'#include "not_here.h"\n' + SOURCE.encode())
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert "app.cu:1:10: error[K100]: 'not_here.h' file not found" in said
    assert "give its folder with -I after '--'" in said


def test_behind_a_missing_header_nothing_else_is_wrong(folder: Folder) -> None:
    lost = b"Matrix a; Matrix b;\nint use() { return a + b; }\n"
    folder.write("app.cu", b'#include "matrix.h"\n' + lost + SOURCE.encode())
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert said.count("error[") == 1
    assert "further errors are not shown: they may come from that" in said


def test_one_cause_is_told_once(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.encode() + b"".join(b"texture<float, 1> t%d;\n" % n for n in range(9)))
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert said.count("no template named 'texture'") == 1
    assert "and in 8 further places" in said
    assert "--cuda-path" in said


def test_a_stream_of_its_own_is_told_with_the_function_that_was_called(folder: Folder) -> None:
    body = (
        "float *a, h[9]; cudaStream_t s; cudaStreamCreate(&s); cudaMalloc(&a, 36); "
        "cudaMemcpyAsync(a, h, 36, cudaMemcpyHostToDevice, s); fill<<<1, 1>>>(a); fill<<<1, 1>>>(a); return 0;"
    )
    text = f"__global__ void fill(float* p) {{ *p = 1; }}\nint main() {{ {body} }}\n"
    folder.write("app.cu", text.encode())
    assert "cudaMemcpyAsync uses a stream of its own" in folder.run("compile", "app.cu", "-o", "out.cu")[1]


def test_what_to_do_about_a_texture_is_not_what_to_do_about_a_pointer(folder: Folder) -> None:
    kernel = "__global__ void fill(float* p, cudaTextureObject_t t) { *p = tex1Dfetch<float>(t, 0); }\n"
    body = "float* a; cudaMalloc(&a, 36); fill<<<1, 1>>>(a, 1); fill<<<1, 1>>>(a, 1); return 0;"
    folder.write("app.cu", f"{kernel}int main() {{ {body} }}\n".encode())
    assert folder.run("compile", "app.cu", "-o", "out.cu")[1].count("help: read through a pointer instead") == 2


def test_a_launch_with_blanks_is_nvccs_alone(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.replace("<<<", "<< <").encode())
    assert "write <<< without a blank" in folder.refuses(3, "compile", "app.cu", "-o", "out.cu")


@pytest.mark.parametrize("name", ["app.cu", "./app.cu", "link.cu", "."])
def test_the_target_is_the_source(folder: Folder, name: str) -> None:
    (folder.path / "link.cu").symlink_to("app.cu")
    assert "error[K104]: " in folder.refuses(2, "compile", "app.cu", "-o", name)


def test_there_is_no_such_folder(folder: Folder) -> None:
    said = folder.refuses(2, "compile", "app.cu", "-o", "sub/out.cu")
    assert "error[K104]: there is no folder sub" in said


def test_a_file_instead_of_a_folder(folder: Folder) -> None:
    assert "error[K104]" in folder.refuses(2, "compile", "app.cu", "-o", "app.cu/out.cu")


def test_a_target_or_folder_that_may_not_be_written(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, proven: bytes
) -> None:
    folder.write("out.cu", b"precious").chmod(0o444)
    if os.geteuid() == 0:  # root may write everything: say that it may not
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path).name != "out.cu" or mode != os.W_OK)
    said = folder.refuses(2, "compile", "app.cu", "-o", "out.cu")
    assert "error[K104]: out.cu cannot be written: permission denied" in said
    if os.geteuid() == 0:
        monkeypatch.setattr(os, "access", lambda path, mode: False)
    else:
        folder.path.chmod(0o555)
    said = folder.refuses(2, "compile", "app.cu", "-o", "other.cu")
    folder.path.chmod(0o755)
    assert "error[K104]: other.cu cannot be written: permission denied" in said


@pytest.mark.parametrize("call", ["fsync", "replace", "chmod"])
@pytest.mark.parametrize("old", [b"precious", None])
def test_a_full_disk_loses_nothing(
    folder: Folder, quick: None, monkeypatch: pytest.MonkeyPatch, call: str, old: bytes | None
) -> None:
    if old is not None:
        folder.write("out.cu", old)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert "error[K103]" in said
    assert "No space left on device" in said


def test_a_full_disk_from_the_start(folder: Folder, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), "/somewhere/.out.cu.x1y2")

    monkeypatch.setattr("tempfile.mkstemp", full)
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu")
    assert "/out.cu: Read-only file system" in said and ".x1y2" not in said  # the file that was meant


def test_an_interrupt_leaves_nothing_behind(folder: Folder, quick: None, monkeypatch: pytest.MonkeyPatch) -> None:
    folder.write("out.cu", b"precious")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupt)
    folder.refuses(1, "compile", "app.cu", "-o", "out.cu")


def test_what_cannot_be_proven_is_written_as_it_was(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """An emitter that forgets a wait: the function stays as it is, and is said to be one whose proof has failed."""
    emit = pipeline._emit

    def without_a_wait(*given):
        text, kept = emit(*given)
        return re.sub(rb"\n.*// kesco: wait for fill.*", b"", text), kept

    monkeypatch.setattr(pipeline, "_emit", without_a_wait)
    folder.write("out.cu", b"of another day")
    code, said = folder.run("compile", "app.cu", "-o", "out.cu")
    assert (code, folder.read("out.cu")) == (0, folder.read("app.cu"))
    assert "remark[K202]: 'main' stays serial: the proof does not follow it" in said
    assert "remark[K221]: 'main': a plainer plan is used" in said and "please report it" in said


def test_a_missing_clang(folder: Folder) -> None:
    said = folder.refuses(5, "compile", "app.cu", "-o", "out.cu", "--clang", "/nonexistent")
    assert "error[K501]: --clang names '/nonexistent', which cannot be used: there is no such program" in said
    assert "help: " in said
    assert folder.refuses(5, "explain", "app.cu", "--clang", "/nonexistent") == said


@pytest.mark.parametrize("option", ["--libclang", "--cuda-path"])
def test_other_missing_tools(folder: Folder, option: str) -> None:
    said = folder.refuses(5, "compile", "app.cu", "-o", "out.cu", option, "/nonexistent")
    assert "/nonexistent" in said
    assert re.search(r"error\[K5\d\d\]", said)


@pytest.mark.parametrize(
    "arguments",
    [
        ("compile", "app.cu", "--bogus"),
        ("compile", "app.cu", "--streams", "0"),
        ("compile", "app.cu", "--strategy", "magic"),
        ("compile", "app.cu", "--dump", "soup"),
        ("compile",),
        ("graph", "app.cu"),
        ("bogus", "app.cu"),
    ],
    ids=" ".join,
)
def test_a_wrong_command_line(folder: Folder, arguments: tuple[str, ...]) -> None:
    assert "Usage: " in folder.refuses(2, *arguments)


def test_an_unknown_compiler_flag(folder: Folder) -> None:
    said = folder.refuses(3, "compile", "app.cu", "-o", "out.cu", "--", "-fno-such-thing")
    assert "unknown argument: '-fno-such-thing'" in said


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("-std=c++99", "invalid value 'c++99' in '-std=c++99'\n  help: give a standard"),
        ("-arch=sm_999", "unsupported CUDA gpu architecture: sm_999\n  help: give one"),
    ],
)
def test_a_wrong_value_of_a_compiler_flag(folder: Folder, flag: str, message: str) -> None:
    """Libclang alone says no more than that it cannot read the file."""
    assert f"error[K100]: {message}" in folder.refuses(3, "compile", "app.cu", "-o", "out.cu", "--", flag)


def test_a_file_too_many(folder: Folder) -> None:
    for command in ("compile", "explain"):
        said = folder.refuses(2, command, "app.cu", "app.cu")
        assert "error[K104]: 'app.cu' is one file too many" in said


def test_diagnostics_as_json(folder: Folder) -> None:
    folder.write("app.cu", SOURCE.replace("return 0", "return zero").encode())
    found = json.loads(folder.refuses(3, "compile", "app.cu", "-o", "out.cu", "--diagnostics", "json"))
    line = SOURCE.splitlines().index("  return 0;") + 1
    assert found == [
        {"code": "K100", "severity": "error", "message": "use of undeclared identifier 'zero'", "file": "app.cu",
         "line": line, "column": 10, "notes": [], "help": ""}
    ]  # fmt: skip
    found = json.loads(folder.refuses(3, "compile", "nothing.cu", "--diagnostics", "json"))
    assert [one["code"] for one in found] == ["K102"]
    folder.write("plain.cu", b"int main() { return 0; }\n")
    code, said = folder.run("compile", "plain.cu", "-o", "out.cu", "--diagnostics", "json")
    assert code == 0
    assert [one["code"] for one in json.loads(said)] == ["K201"]
    folder.write("app.cu", SOURCE.encode())
    assert folder.run("compile", "app.cu", "-o", "out.cu", "--diagnostics", "json") == (0, "[]\n")


# ---- the other commands ---------------------------------------------------------------------------------------------


def test_verify_accepts_a_good_pair(folder: Folder, proven: bytes) -> None:
    folder.write("good.cu", proven)
    assert folder.run("verify", "app.cu", "good.cu") == (0, "'main': 2 conflicting pairs, all ordered\n")


def test_verify_accepts_a_program_for_itself(folder: Folder) -> None:
    assert folder.run("verify", "app.cu", "app.cu")[0] == 0


def test_verify_names_both_places_of_a_bad_pair(folder: Folder, proven: bytes) -> None:
    bad = [line for line in proven.decode().split("\n") if "wait for fill" not in line]
    folder.write("bad.cu", "\n".join(bad).encode())
    said = folder.refuses(4, "verify", "app.cu", "bad.cu")
    first, second = (1 + next(n for n, line in enumerate(bad) if line.startswith(f"  {k}<<<")) for k in ("fill", "add"))
    assert f"bad.cu:{second}:3: error[K401]: 'add' may run before 'fill#1' is done (RAW on 'x')" in said
    assert f"bad.cu:{first}:3: note: " in said
    assert "on the path fill#1" in said


def test_verify_misses_what_is_missing(folder: Folder, proven: bytes) -> None:
    folder.write("bad.cu", re.sub(rb"\n  add<<<.*", b"", proven))
    assert "'add'" in folder.refuses(4, "verify", "app.cu", "bad.cu")
    folder.write("plain.cu", b"int main() { return 0; }\n")
    assert "K403" in folder.refuses(3, "verify", "plain.cu", "plain.cu")
    assert "cannot read gone.cu" in folder.refuses(3, "verify", "app.cu", "gone.cu")


def test_verify_knows_the_prologue(folder: Folder, proven: bytes) -> None:
    folder.write("bad.cu", proven.replace(b"cudaEventDisableTiming", b"cudaEventDefault"))
    assert "the prologue is not the one kesco writes" in folder.refuses(4, "verify", "app.cu", "bad.cu")


def test_explain_says_where_and_why(folder: Folder) -> None:
    code, said = folder.run("explain", "app.cu")
    assert code == 0
    assert re.search(rf"{ADD}:3\s+add\s+stream 1; reads x, y; writes z", said)
    assert "waits for fill#1 on stream 0: RAW on x" in said
    assert folder.names == {"app.cu"}


def test_graph_in_all_forms(folder: Folder) -> None:
    for form in ("svg", "dot", "json"):
        assert folder.run("graph", "app.cu", "-o", f"dfg.{form}") == (0, "")
    assert ElementTree.fromstring(folder.read("dfg.svg")).tag.endswith("svg")
    assert folder.read("dfg.dot").lstrip().startswith(b"digraph")
    known = json.loads(folder.read("dfg.json"))["functions"][0]
    assert (known["name"], known["streams"], known["width"]) == ("main", 2, 2)
    labels = {one["id"]: one["label"] for one in known["operations"]}
    assert {"fill#1", "fill#2", "add"} <= set(labels.values())
    assert folder.names == {"app.cu", "dfg.svg", "dfg.dot", "dfg.json"}


def test_graph_refuses(folder: Folder) -> None:
    assert "unknown form 'png'" in folder.refuses(2, "graph", "app.cu", "-o", "dfg.png")
    assert "there is no folder sub" in folder.refuses(2, "graph", "app.cu", "-o", "sub/dfg.svg")
    assert "no function 'nobody' in app.cu" in folder.refuses(
        2, "graph", "app.cu", "-o", "dfg.svg", "--function", "nobody"
    )


def test_doctor(folder: Folder) -> None:
    code, said = folder.run("doctor")
    assert code == 0
    assert said.rstrip().endswith("ready")
    for part in ("clang", "libclang", "resource directory", "CUDA", "nvcc", "GPU"):
        assert re.search(rf"^\W*{part}\W+(ok|absent|optional)\b", said, re.MULTILINE)
    code, said = folder.run("doctor", "--clang", "/nonexistent")
    assert code == 5
    assert "/nonexistent" in said


def test_version_and_help(folder: Folder) -> None:
    assert folder.run("--version") == (0, f"kesco, version {__version__}\n")
    for command in ("compile", "verify", "explain", "graph", "doctor"):
        code, said = folder.run(command, "--help")
        assert code == 0
        assert command in said


def test_python_m_kesco(folder: Folder) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "kesco", "--version"], capture_output=True, text=True, check=False, env=environment()
    )
    assert (done.returncode, done.stdout) == (0, f"kesco, version {__version__}\n")


def environment() -> dict[str, str]:
    """The environment, with this checkout's package in front."""
    root = str(Path(pipeline.__file__).resolve().parents[1])
    return dict(os.environ) | {
        "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]).rstrip(os.pathsep)
    }
