"""``kesco-nvcc`` in the place of nvcc: the same files, messages and exit codes, and lines that lead to the source."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from wrapper.building import CONCURRENT, ROOT, SERIAL, Done, Yard, unnumbered

from kesco.frontend.standard import is_standard_path
from kesco.wrapper.settings import SWITCHES, VALUES

OPTIONS = [
    "-c src/one.cu",
    "-dc src/one.cu -o=one.o -MD",
    "-rdc=true -c src/one.cu -o one.o -MMD -MP -MF deps/x.d -MT there/one.o",
    "-c src/one.cu -MD -odir deps",
    "-x cu -c src/plain.cpp -o plain.o",
    "-c src/one.cu src/plain.cpp",
    "-ptx src/one.cu",
    "-cubin -arch=sm_80 src/one.cu -o one.cubin",
    "-E src/one.cu -o one.ii",
    "-M src/one.cu -o one.d",
    "-shared -Xcompiler -fPIC src/one.cu -o libone.so",
    "-lib src/one.cu -o libone.a",
    "--dryrun -c src/one.cu -o one.o",
    "-optf src/options -c src/one.cu",
    "-c src/one.cu -o one.o -ccbin g++ -I nowhere,src",
    "-c src/one.cu -o nowhere/one.o",
    "-c src/bad.cu -o bad.o -MD",
    "-c src/missing.cu -o one.o",
    "-c src/one.cu -o one.o -Xcompiler -Wall -Werror all-warnings",
    "-c src/one.cu --no-such-option",
    "-c src/one.cu -o",
    "",
]
"""What is built with nvcc and with kesco-nvcc; nothing in these sources is to be rewritten."""
THOROUGH = bool(os.environ.get("KESCO_THOROUGH"))
FEW = (0, 2, 8, 13, 16)


def both(yard: Yard, words: list[str], tmp_path: Path, env: dict[str, str] | None = None) -> None:
    """Run nvcc, then kesco-nvcc twice: what is not known, and what is."""
    (yard.folder / "deps").mkdir(exist_ok=True)
    plain = yard.run("nvcc", *words, env=env)
    files = {name: yard.data(name) for name in yard.files()}
    for name in files:
        (yard.folder / name).unlink()
    if plain.code:  # nvcc leaves the dependencies of what it could not compile; results come whole and together
        files = {name: data for name, data in files.items() if not name.endswith(".d")}
    for _ in "unknown", "known":
        ours = yard.run("kesco-nvcc", *words, env=env)
        assert unnumbered(ours.err.encode()) == unnumbered(plain.err.encode())
        assert (ours.code, ours.out) == (plain.code, plain.out)
        assert yard.files() == set(files)
        for name, data in files.items():
            assert yard.data(name) == data, name


@pytest.mark.parametrize("words", OPTIONS if THOROUGH else [OPTIONS[number] for number in FEW])
def test_the_same_as_nvcc(words: str, yard: Yard, tmp_path: Path) -> None:
    yard.write("src/options", '-DSAID="a b" -I src\n-o one.o')
    yard.write("src/bad.cu", SERIAL + "int broken() { return undeclared; }\n")
    both(yard, words.split(), tmp_path)


def test_an_old_result_after_an_error_is_what_nvcc_leaves(yard: Yard) -> None:
    yard.write("src/bad.cu", SERIAL + "int broken() { return undeclared; }\n")
    for program in ("nvcc", "kesco-nvcc", "kesco-nvcc"):
        yard.write("bad.o", "old")
        assert yard.run(program, "-c", "src/bad.cu", "-o", "bad.o").code != 0
        assert yard.read("bad.o") == "old"


@pytest.mark.parametrize(
    "flags",
    ["", "-rdc=true", "-lineinfo", "-g", "-G", "-ccbin gcc", "-ptx", "-std=c++20 -O1"]
    if THOROUGH
    else ["-rdc=true -lineinfo -ccbin gcc", "-g -G"],
)
def test_another_text_leaves_no_trace(flags: str, yard: Yard, tmp_path: Path) -> None:
    """The same text, given to nvcc as kesco's is given: the result is nvcc's own."""
    words = [*flags.split(), *([] if flags == "-ptx" else ["-c"]), "src/app.cu", "-o", "app.o", "-MD", "-MF", "app.d"]
    assert yard.run("nvcc", *words).code == 0
    want = yard.data("app.o"), yard.read("app.d")
    texts = {"src/app.cu": b'#line 1 "src/app.cu"\n' + CONCURRENT.encode()}
    script = (
        "import os, sys; sys.path.insert(0, sys.argv[1])\nfrom kesco.wrapper import substitute\n"
        "from kesco.wrapper.commandline import load_table, parse\nimport subprocess\n"
        f"words, texts = {words!r}, {texts!r}\ncommand = parse(words, load_table('nvcc', {str(tmp_path)!r}), {{}})\n"
        f"os.mkdir({str(tmp_path / 'aside')!r})\n"
        f"change = substitute.for_nvcc(command, words, texts, {{}}, {str(tmp_path / 'aside')!r}, os.environ)\n"
        "done = subprocess.run(['nvcc', *change.arguments], env=change.environment)\n"
        "sys.exit(done.returncode or not change.used())"
    )
    done = yard.run(sys.executable, "-c", script, str(ROOT))
    assert done.code == 0, done.err
    assert yard.read("app.d") == want[1]
    if "-g" in flags.lower().split():  # here nvcc's own results differ from each other
        assert str(tmp_path / "aside").encode() not in yard.data("app.o")
    else:
        assert yard.data("app.o") == want[0]


@dataclass(frozen=True)
class Rewritten:
    """A program built by nvcc and by kesco-nvcc, both with a warning, lines for debuggers and dependencies."""

    plain: Done
    ours: Done
    known: Done
    yard: Yard

    def dependencies(self, name: str) -> list[str]:
        return self.yard.read(name).replace("\\\n", "").split()


@pytest.fixture(scope="module")
def rewritten(common_yard: Yard) -> Rewritten:
    yard, reports = common_yard, {"KESCO_REPORT_DIR": "reports"}
    yard.write("src/app.cu", CONCURRENT.replace("  return 0;\n", "  int nothing;\n  return 0;\n"))
    words = ("-g", "-lineinfo", "-c", "src/app.cu", "-MD")
    plain = yard.run("nvcc", *words, "-o", "plain.o", "-MF", "plain.d", "-MT", "app.o")
    ours, known = (yard.run("kesco-nvcc", *words, "-o", "app.o", "-MF", "app.d", env=reports) for _ in range(2))
    for name in ("plain", "app"):
        assert yard.run("nvcc", f"{name}.o", "-o", name).code == 0
    return Rewritten(plain, ours, known, yard)


@pytest.mark.thorough
def test_a_rewritten_program_says_the_same(rewritten: Rewritten) -> None:
    yard = rewritten.yard
    assert rewritten.ours.code == 0
    page, report = sorted((yard.folder / "reports").iterdir())
    assert (page.suffix, report.suffix, page.stem) == (".html", ".json", report.stem)
    assert json.loads(report.read_text())["rewritten"] is True
    assert page.read_text().startswith("<!DOCTYPE html>") and "app.cu" in page.read_text()
    ours, plain = yard.run("./app"), yard.run("./plain")
    assert ours.out == plain.out
    assert ours.out.splitlines()[0] == f"src/app.cu:{1 + CONCURRENT[: CONCURRENT.index('__FILE__')].count(chr(10))}"
    assert ours.out.splitlines()[-1] == "src/app.cu src/app.cu"  # __BASE_FILE__, twice in a line
    data = yard.data("app.o")
    assert b"cudaStreamWaitEvent" in data
    for trace in (rb"kesco-\d+-", rb"/source\b", str(yard.cache).encode(), rb"\.kesco"):
        assert not re.search(trace, data), trace


@pytest.mark.thorough
def test_dependencies_of_a_rewritten_file_are_those_of_the_source_and_the_standard_library(
    rewritten: Rewritten,
) -> None:
    plain, ours = rewritten.dependencies("plain.d"), rewritten.dependencies("app.d")
    assert ours[:3] == ["app.o", ":", "src/app.cu"] and "src/sizes.h" in ours
    assert set(plain) <= set(ours)
    assert [name for name in set(ours) - set(plain) if not is_standard_path(name)] == []


def test_lines_for_a_debugger_are_lines_of_the_source(rewritten: Rewritten) -> None:
    if shutil.which("objdump") is None:
        pytest.skip("no objdump")
    text = rewritten.yard.read("src/app.cu").splitlines()
    table = rewritten.yard.run("objdump", "--dwarf=decodedline", "app.o").out
    lines = {int(number) for number in re.findall(r"^app\.cu\s+(\d+)\s", table, re.MULTILINE)}
    assert lines and max(lines) <= len(text)
    calls = {n for n, line in enumerate(text, 1) if "<<<" in line or "printf" in line}
    assert calls <= lines and text.index("int main() {") + 1 in lines


def test_warnings_in_a_rewritten_file_lead_to_the_source(rewritten: Rewritten) -> None:
    assert "nothing" in rewritten.plain.err
    assert rewritten.ours == rewritten.known == rewritten.plain


def test_with_a_default_stream_for_each_thread_nothing_is_rewritten(yard: Yard) -> None:
    """Said where kesco sees it last; the other ways of saying it are those of `test_command_lines`."""
    quick = str(yard.counting(quick=True)[0])
    for flags, moved in (("--default-stream per-thread", False), ("--default-stream=legacy", True)):
        env = {"KESCO_NVCC": quick, "NVCC_APPEND_FLAGS": flags}
        done = yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o", env=env)
        assert (done.code, done.err) == (0, "")
        assert (b"kesco_streams" in yard.data("app.o")) is moved


def test_flags_of_kesco(yard: Yard) -> None:
    quick = str(yard.counting(quick=True)[0])

    def streams(env: dict[str, str], *before: str) -> bool:
        done = yard.run(
            *(before or ("kesco-nvcc",)), "-c", "src/app.cu", "-o", "app.o", env={"KESCO_NVCC": quick, **env}
        )
        assert (done.code, done.err) == (0, "")
        return b"kesco_streams" in yard.data("app.o")

    assert streams({})
    assert not streams({"KESCO": "off"})
    assert not streams({"KESCO_FLAGS": "--strategy serial"})
    assert not streams({}, "kesco-launch", "--streams=1", "--", quick)
    assert streams({}, "kesco-launch", "--streams", "2", quick)


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"KESCO_FLAGS": "--stream 4"}, "--stream"),
        ({"KESCO_FLAGS": "--streams"}, "needs a value"),
        ({"KESCO_FLAGS": "--streams 65"}, "1 to 64"),
        ({"KESCO_FLAGS": "--zone-age never"}, "0 to 1000"),
        ({"KESCO_FLAGS": "--emit 'x"}, "cannot be read"),
        ({"KESCO_FLAGS": "--emit fast"}, "streams or graph or auto"),
        ({"KESCO_FLAGS": "--order up"}, "need or keep"),
        ({"KESCO_TIMEOUT": "soon"}, "number of seconds"),
        ({"KESCO": "maybe"}, "'off', 'on' or 'check'"),
    ],
)
def test_a_setting_that_makes_no_sense_ends_the_build(env: dict[str, str], said: str, yard: Yard) -> None:
    done = yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o", env=env)
    assert done.code == 2 and said in done.err and "K702" in done.err and done.err.count("\n") == 1
    assert yard.files() == set()


@pytest.mark.parametrize(
    ("env", "said"),
    [
        ({"KESCO_CLANG": "/nowhere/clang"}, "K501"),
        ({"KESCO_LIBCLANG": "/nowhere/libclang.so"}, "K502"),
        ({"KESCO_TIMEOUT": "0.01"}, "KESCO_TIMEOUT"),
        ({"KESCO_LIBCLANG": "/bin/true"}, "K502"),
    ],
)
def test_where_kesco_cannot_work_the_build_goes_on(env: dict[str, str], said: str, yard: Yard) -> None:
    quick = str(yard.counting(quick=True)[0])
    assert yard.run(quick, "-c", "src/app.cu", "-o", "plain.o").code == 0
    for _ in range(2):
        done = yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o", env={"KESCO_NVCC": quick, **env})
        assert done.code == 0 and "K701" in done.err and said in done.err and done.err.count("\n") == 1
        assert yard.data("app.o") == yard.data("plain.o")
        assert yard.files() == {"app.o", "plain.o"}


def test_what_clang_does_not_accept_is_compiled_as_it_is(yard: Yard) -> None:
    yard.write("src/app.cu", CONCURRENT + "#ifdef __clang__\n#error not for clang\n#endif\n")
    for _ in "unknown", "known":
        done = yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o")
        assert done.code == 0 and "src/app.cu:" in done.err and "K100" in done.err and done.err.count("\n") == 1


def test_what_nvcc_does_not_accept_rewritten_is_compiled_as_it_is(yard: Yard) -> None:
    real = shutil.which("nvcc", path=yard.environment()["PATH"])
    refuses = f'case "$PATH" in */kesco-*/bin:*) echo refused >&2; exit 3;; esac\nexec {real} "$@"\n'
    env = {"KESCO_NVCC": str(yard.script("choosy-nvcc", refuses))}
    assert yard.run("nvcc", "-c", "src/app.cu", "-o", "plain.o").code == 0
    done = yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o", env=env)
    assert done.code == 0 and "K703" in done.err and "refused" not in done.err and done.err.count("\n") == 1
    assert yard.data("app.o") == yard.data("plain.o")


def test_a_host_compiler_that_is_not_reached_is_noticed(yard: Yard) -> None:
    real = shutil.which("nvcc", path=yard.environment()["PATH"])
    env = {"KESCO_NVCC": str(yard.script("own-path-nvcc", f'PATH=/usr/bin:/bin exec {real} "$@"\n'))}
    assert yard.run("nvcc", "-c", "src/app.cu", "-o", "plain.o").code == 0
    done = yard.run("kesco-nvcc", "-c", "src/app.cu", "-o", "app.o", env=env)
    assert done.code == 0 and "K701" in done.err and "host compiler" in done.err
    assert yard.data("app.o") == yard.data("plain.o")


def test_arguments_and_exit_codes_are_passed_on(yard: Yard) -> None:
    fake = yard.script("fake-nvcc", 'for word; do echo "[$word]"; done; exit 7\n')
    env = {"KESCO_NVCC": str(fake)}
    for words in (["--version"], ["-E", "a b.cu", ""], ["x.o", "-o", "p", "*"]):
        done = yard.run("kesco-nvcc", *words, env=env)
        assert (done.code, done.out) == (7, "".join(f"[{word}]\n" for word in words))
        assert yard.run("kesco-launch", str(fake), *words).out == done.out
    assert yard.run("kesco-nvcc", "-c", "src/one.cu", env=env).code == 7


def test_a_compiler_that_dies_of_a_signal(yard: Yard) -> None:
    env = {"KESCO_NVCC": str(yard.script("dying-nvcc", "kill -TERM $$\n"))}
    for words in (["--version"], ["-c", "src/plain.cu"], ["-c", "src/app.cu", "-o", "app.o"]):
        assert yard.run("kesco-nvcc", *words, env=env).code == -signal.SIGTERM


def test_without_a_compiler(yard: Yard) -> None:
    done = yard.run("kesco-nvcc", "-c", "src/one.cu", env={"KESCO_NVCC": "/nowhere/nvcc"})
    assert done.code == 127 and "K704" in done.err and "KESCO_NVCC" in done.err
    assert yard.run("kesco-launch", "nosuch-nvcc", "-c", "x.cu").code == 127
    cache = yard.script("ccache", 'echo "asked: $*"\n')
    done = yard.run("kesco-launch", "ccache", "nvcc", "-c", "src/one.cu")
    assert done.code == 2 and "K702" in done.err and "ccache kesco-nvcc" in done.err and not done.out
    (yard.programs / "nvcc").symlink_to(cache)
    assert "Cuda compilation tools" in yard.run("kesco-nvcc", "--version").out
    assert yard.run("kesco-launch", "--streams", "2").code == 2


def test_it_may_be_called_nvcc_itself(yard: Yard) -> None:
    (yard.programs / "nvcc").symlink_to(yard.programs / "kesco-nvcc")
    assert "Cuda compilation tools" in yard.run("nvcc", "--version").out


@pytest.mark.thorough
def test_several_sources_of_which_one_is_rewritten(yard: Yard) -> None:
    assert yard.run("kesco-nvcc", "-c", "src/app.cu", "src/one.cu", "src/plain.cpp").code == 0
    assert yard.files() == {"app.o", "one.o", "plain.o"}
    assert b"cudaStreamWaitEvent" in yard.data("app.o") and b"cudaStreamWaitEvent" not in yard.data("one.o")
    yard.write("src/one.cu", SERIAL.replace("fill", "other"))
    folder = os.path.dirname(shutil.which("gcc") or "")
    done = yard.run("kesco-nvcc", "-rdc=true", "src/app.cu", "src/one.cu", "-o", "prog", "-ccbin", folder)
    assert done.code == 0 and "K70" not in done.err and b"cudaStreamWaitEvent" in yard.data("prog")
    assert "src/app.cu:" in yard.run("./prog").out


def test_the_page_names_every_option() -> None:
    page = (Path(__file__).parents[2] / "docs/building.md").read_text("utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| `KESCO_FLAGS` |"))
    assert {*re.findall(r"`(--[\w-]+)`", row)} == {*VALUES, *SWITCHES}


def test_little_is_loaded_to_start() -> None:
    script = "import sys; sys.path.insert(0, sys.argv[1]); import kesco.wrapper.front; print(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", script, str(ROOT)], capture_output=True, text=True, check=True
    )
    heavy = {"dataclasses", "inspect", "pathlib", "subprocess", "tempfile", "tomllib", "hashlib", "click", "networkx",
             "typing"}  # fmt: skip
    assert not heavy & set(done.stdout.split())
    assert "kesco.pipeline" not in done.stdout
