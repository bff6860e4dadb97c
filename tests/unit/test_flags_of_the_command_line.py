"""What the words behind ``--`` mean, to nvcc and to clang."""

from __future__ import annotations

from pathlib import Path

import pytest

from kesco.cli.flags import in_one_argument, taken_apart
from kesco.errors import UsageError
from kesco.toolchain.flags import translate


def test_folders_in_a_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["-I", "a,b", "-Ic,d", "--pre-include=e,f", "-O", "3", "-l", "m", "-t4"]
    expected = ("-I", "a", "-I", "b", "-I", "c", "-I", "d", "-include", "e", "-include", "f")
    assert translate(taken_apart(words)).passed == expected
    (tmp_path / "a,b").mkdir()
    assert taken_apart(["-I", "a,b"]) == ("-I", "a,b")


@pytest.mark.parametrize("words", [["-DX=1,Y"], ["-D", "X,Y=2"], ["--define-macro=X,Y"], ["-UX,Y"]])
def test_macros_in_a_list_are_refused(words: list[str]) -> None:
    with pytest.raises(UsageError) as raised:
        taken_apart(words)
    assert raised.value.diagnostics[0].code == "K104"


def test_a_comma_of_one_macro() -> None:
    assert taken_apart(["-DX=a\\,b", '-DY="a,b"', "-DZ", "-Wl,x"]) == ("-D", "X=a,b", "-D", 'Y="a,b"', "-DZ", "-Wl,x")


def test_words_for_the_host_compiler() -> None:
    assert translate(["-Xcompiler", "-DA -DB=2,-DC='x y'"]).passed == ("-DA", "-DB=2", "-DC=x y")


@pytest.mark.parametrize("words", [["-optf", "outer"], ["--options-file=inner"], ["@outer"]])
def test_files_of_options_say_what_the_text_means(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "outer").write_text("--options-file inner")
    (tmp_path / "inner").write_text("-DX=1\n-default-stream per-thread\n")
    assert taken_apart(["-O2", *words, "-DY"]) == ("-O2", "-DX=1", "-default-stream", "per-thread", "-DY")


def test_variables_of_nvcc_say_what_the_text_means(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "more").write_text("-DB")
    environ = {"NVCC_PREPEND_FLAGS": "-DA", "NVCC_APPEND_FLAGS": "-optf more"}
    assert taken_apart(["-DX"], environ) == ("-DA", "-DX", "-DB")


@pytest.mark.parametrize("words", [["-optf", "none"], ["@none"], ["-optf=itself"], ["-optf", "quoted"], ["b.cu"]])
def test_what_cannot_be_followed_is_refused(words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "itself").write_text("-optf itself")
    (tmp_path / "quoted").write_text("-DX='a'")
    with pytest.raises(UsageError) as raised:
        taken_apart(words)
    assert raised.value.diagnostics[0].code == "K104"


def test_a_quote_without_an_end() -> None:
    with pytest.raises(UsageError, match="No closing quotation"):
        in_one_argument("-DX='")
