"""What a command line asks for, whichever way it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.toolchain.flags import translate
from kesco.wrapper.commandline import Command, load_table, parse


def understood(words: str, tmp_path: Path, compiler: str = "nvcc", **environ: str) -> Command:
    return parse(words.split(), load_table(compiler, str(tmp_path / "cache")), environ)


@pytest.mark.parametrize(
    ("words", "sources", "result"),
    [
        ("-c a.cu -o a.o", ["a.cu"], "a.o"),
        ("-c a.cu -o=a.o", ["a.cu"], "a.o"),
        ("--compile --output-file=a.o a.cu", ["a.cu"], "a.o"),
        ("-o prog a.cu b.cu c.o d.cpp -lm", ["a.cu", "b.cu"], "prog"),
        ("-x cu a.cpp -c", ["a.cpp"], ""),
        ("-x=cu -c a.cpp", ["a.cpp"], ""),
        ("--x cu -c a.cpp b.txt", ["a.cpp", "b.txt"], ""),
        ("-x c++ -c a.cu", [], ""),
        ("-include b.cu -I c.cu -Xcompiler d.cu -MF e.cu -MT f.cu -c a.cu", ["a.cu"], ""),
        ("-arch sm_80 -std c++17 -rdc true -t 2 a.cu -ptx", ["a.cu"], ""),
        ("-extended-lambda -expt-relaxed-constexpr -lineinfo -link a.cu", ["a.cu"], ""),
        ("-Wall -fPIC -forward-unknown-to-host-compiler -c a.cu", ["a.cu"], ""),
        ("-c -odir out a.cu", ["a.cu"], ""),
        ("a.o b.o -o prog", [], "prog"),
    ],
)
def test_sources_and_results(words: str, sources: list[str], result: str, tmp_path: Path) -> None:
    command = understood(words, tmp_path)
    assert (command.sources, command.result, command.rewritable) == (sources, result, bool(sources))


@pytest.mark.parametrize(
    "words",
    [
        *("-E a.cu", "-M a.cu", "-c --dryrun a.cu", "--keep -c a.cu", "-dlink a.cu", "-lib a.cu", "--version"),
        *("-c -v a.cu", "-c a.cu -o", "-c @no a.cu", "-c a.cu -optf no", "-run a.cu", "--list-gpu-arch a.cu"),
    ],
)
def test_passed_on_as_it_is(words: str, tmp_path: Path) -> None:
    assert not understood(words, tmp_path).rewritable


def test_files_of_options(tmp_path: Path) -> None:
    (tmp_path / "inner").write_text('-DX="a b"\n-o out.o\n')
    command = understood(f"-c a.cu --options-file {tmp_path}/inner -DY", tmp_path)
    assert command.flags == ["-c", "-D", "X=a b", "-D", "Y"]
    assert (command.result, command.result_at, command.hidden) == ("out.o", None, True)
    assert understood(f"-optf={tmp_path}/inner a.cu", tmp_path).result == "out.o"
    assert understood(f"@{tmp_path}/inner a.cu", tmp_path).result == "out.o"


def test_files_of_options_in_others_and_in_variables(tmp_path: Path) -> None:
    """Nvcc opens those, too: what they define decides what the source means."""
    (tmp_path / "inner").write_text("-DX\n")
    (tmp_path / "outer").write_text(f"-DY --options-file={tmp_path}/inner")
    (tmp_path / "itself").write_text(f"-optf {tmp_path}/itself")
    assert understood(f"-c a.cu -optf {tmp_path}/outer", tmp_path).flags == ["-c", "-D", "Y", "-D", "X"]
    assert understood("-c a.cu", tmp_path, NVCC_APPEND_FLAGS=f"-optf {tmp_path}/inner").flags == ["-c", "-D", "X"]
    assert not understood("-c a.cu", tmp_path, NVCC_APPEND_FLAGS="-optf none").rewritable
    endless = understood(f"-c a.cu -optf {tmp_path}/itself", tmp_path)
    assert endless.unclear and not endless.rewritable


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        ("-I a,b -Ic -I=d,e", "-I a -I b -I c -I d -I e"),
        ('-DX=1,Y -DX="a,b" -DX=a\\,b', '-D X=1 -D Y -D X="a,b" -D X=a,b'),
        ("-include=a,b -isystem c", "-include a -include b -isystem c"),
        ("-Xcompiler -Wall,-DX=1\\,2 --compiler-options=-O2", "-Wall -DX=1,2 -O2"),
        ("-O2 -O 3 -O=1 -lm -m64 -t 2", "-O2 -O3 -O1 -lm -m64 -t2"),
        (
            "-std=c++17 -gencode arch=compute_70,code=sm_70",
            "-std c++17 -gencode arch=compute_70,code=sm_70",
        ),
        ('-DA=\\"s\\" -DB=\\n -D="C=\\\\n"', '-D A="s" -D B=n -D "C=\\n"'),
    ],
)
def test_lists_are_taken_apart_as_nvcc_does(words: str, flags: str, tmp_path: Path) -> None:
    assert understood(words, tmp_path).flags == flags.split()


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        ("-DA -DB=2", ["-DA", "-DB=2"]),  # each was seen in what `nvcc --dryrun` prints, as its shell reads it
        ("-DA='x y',-Wall", ["-DA=x y", "-Wall"]),
        ('-DA=\\"a\\"', ["-DA=a"]),
        (r"-DA=\\\"a\\\"", ['-DA="a"']),
        ('-DA="a,b",-DB', ["-DA=a,b", "-DB"]),
    ],
)
def test_words_for_the_host_compiler_are_read_by_a_shell(value: str, flags: list[str], tmp_path: Path) -> None:
    command = parse(["-Xcompiler", value, "-c", "a.cu"], load_table("nvcc", str(tmp_path)), {})
    assert command.flags == [*flags, "-c"] and command.rewritable


@pytest.mark.parametrize(
    "word", ["-DX=$HOME", "-DX=`id`", "-I$HOME", "-Xcompiler=-DX=$Y", "-Xcompiler='", "@file", "-optf=file"]
)
def test_what_a_shell_would_change_is_left_alone(word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "file").write_text('-DX=\\"q\\"')  # nvcc makes q of it here, and "q" among the arguments
    command = parse([word, "-c", "a.cu"], load_table("nvcc", "/proc/nowhere"), {})
    assert command.unclear and not command.rewritable and not command.passed
    for quoted in ('-DX="a b"', "-DX='a'"):
        assert not parse(["a.cu"], load_table("nvcc", "/proc/nowhere"), {"NVCC_APPEND_FLAGS": quoted}).rewritable


def test_variables_of_nvcc_count(tmp_path: Path) -> None:
    command = understood("-c a.cu", tmp_path, NVCC_PREPEND_FLAGS="-DX", NVCC_APPEND_FLAGS="--default-stream per-thread")
    assert command.flags == ["-D", "X", "-c", "--default-stream", "per-thread"]
    assert not understood("-c a.cu", tmp_path, NVCC_APPEND_FLAGS="-E").rewritable


@pytest.mark.parametrize(
    ("words", "variable", "each"),
    [
        ("--default-stream=per-thread", "", True),
        ("-default-stream per-thread", "", True),
        ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM", "", True),
        ("-Xcompiler -DCUDA_API_PER_THREAD_DEFAULT_STREAM=1", "", True),
        ("--options-file PATH", "", True),
        ("", "--default-stream per-thread", True),
        ("--default-stream=legacy", "", False),
        ("-default-stream null", "", False),
    ],
)
def test_a_default_stream_for_each_thread_is_seen(words: str, variable: str, each: bool, tmp_path: Path) -> None:
    (tmp_path / "options").write_text("--default-stream=per-thread")
    command = understood(
        f"-c a.cu {words}".replace("PATH", f"{tmp_path}/options"), tmp_path, NVCC_APPEND_FLAGS=variable
    )
    assert any("PER_THREAD" in flag for flag in translate(command.flags).passed) is each


def test_names_of_results_are_no_flags(tmp_path: Path) -> None:
    one = understood("-c a.cu -o a.o -MD -MF a.d -MT x -DX", tmp_path)
    two = understood("-D=X a.cu -c -o=b.o", tmp_path)
    assert sorted(one.flags) == sorted(two.flags) == ["-D", "-c", "X"]
    assert one.dependencies and one.dependency_file == "a.d" and one.dependency_target


@pytest.mark.parametrize(
    ("words", "sources"),
    [
        ("-c a.cu -o a.o --cuda-gpu-arch=sm_75", ["a.cu"]),
        ("-x cuda a.cpp -c", ["a.cpp"]),
        ("-x cuda a.cpp -x c++ b.cpp", []),
        ("-c a.cpp", []),
        ("-isystem a.cu -Xclang b.cu -c c.cu", ["c.cu"]),
        ("-fsyntax-only a.cu", []),
    ],
)
def test_clang(words: str, sources: list[str], tmp_path: Path) -> None:
    command = understood(words, tmp_path, "clang")
    assert (command.sources if command.rewritable else []) == sources


def test_a_damaged_table_in_the_cache_is_made_anew(tmp_path: Path) -> None:
    first = load_table("nvcc", str(tmp_path))
    assert load_table("nvcc", str(tmp_path)) == first
    for damage in ("", "{", '{"stamp": 1}', "[]"):
        (tmp_path / "nvcc.json").write_text(damage)
        assert load_table("nvcc", str(tmp_path)) == first
    assert load_table("nvcc", "/proc/nowhere") == first
