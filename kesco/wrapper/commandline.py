"""What a compiler's command line asks for, as far as one must know to put another source in its place.

In: the words after the compiler's name, and its table from ``resources/*.toml``. Out: a `Command`: the CUDA sources,
the flags that decide what they mean, where the result goes, and whether the command makes code from sources at all.

The tables are kept as JSON in the cache, because reading TOML costs more than all the rest of a start. What a word
means is only ever looked up there: a compiler's new option is a line in its table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence

TYPE_CHECKING = False  # typing takes as long to import as the rest of this
if TYPE_CHECKING:
    from typing import Any

    Table = dict[str, Any]
else:
    Table = dict
_DEEPEST = 20  # files of options in files of options
_WORDS = ("passed", "values", "joined", "alone", "lists", "evaluated")


class Command:
    """A command line, understood; `sources` are CUDA sources as they are named, `flags` are all words but those and
    the names of results. `result` is empty where the name is the compiler's own choice or stands in a file of options.
    """

    def __init__(self, table: Table) -> None:
        self.table = table
        self.sources: list[str] = []
        self.others: list[str] = []  # inputs that are no CUDA sources
        self.flags: list[str] = []
        self.passed = ""  # the option for which the command is none of kesco's business
        self.unclear = ""  # why it is not known what the command means
        self.ending = ""  # of the results: empty for a program
        self.result = ""
        self.result_at: tuple[int, str] | None = None  # its word among the arguments, and what precedes it there
        self.dependencies = False
        self.dependency_file = ""
        self.dependency_at: tuple[int, str] | None = None
        self.dependency_target = False
        self.elsewhere = False  # results go to a folder that an option names
        self.host_compiler = ""
        self.host_compiler_at: tuple[int, str] | None = None
        self.hidden = False  # something of this was said in a file of options or in a variable

    @property
    def rewritable(self) -> bool:
        """Whether the command makes code from CUDA sources."""
        return bool(self.sources) and not self.passed and not self.unclear


def load_table(name: str, cache: str) -> Table:
    """The table of a compiler, ``nvcc`` or ``clang``; `cache` is a folder that may not exist."""
    path = os.path.join(os.path.dirname(__file__), "resources", f"{name}.toml")
    status = os.stat(path)
    stamp = f"{path}:{status.st_mtime_ns}:{status.st_size}"
    kept = os.path.join(cache, f"{name}.json")
    try:
        with open(kept, encoding="utf-8") as file:
            known = json.load(file)
        if known["stamp"] == stamp:
            return dict(known["table"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    import tomllib

    with open(path, "rb") as binary:
        table: Table = tomllib.load(binary)
    for key in _WORDS:
        table[key] = table[key].split()
    table["values"] += [
        *(word for key in ("language", "options_files", "output", "dependency_output") for word in table[key]),
        *(word for key in ("dependency_target", "output_folder", "host_compiler") for word in table[key]),
    ]
    from kesco.wrapper.files import write_whole

    try:
        os.makedirs(cache, exist_ok=True)
        write_whole(kept, json.dumps({"stamp": stamp, "table": table}).encode())
    except OSError:
        pass
    return table


def parse(arguments: Sequence[str], table: Table, environ: Mapping[str, str], folder: str = "") -> Command:
    """What the words ask for; a file of options that cannot be read leaves the command to the compiler.

    `folder` is where the command runs, if that is not the current one.
    """
    command = Command(table)
    language = ""
    inputs: list[str] = []
    positions = {key: set(table[key]) for key in ("values", "alone", "passed")}
    joined = tuple(table["joined"])
    try:
        words = list(words_of(arguments, table, environ, folder))
    except Unclear as problem:
        words = [(word, place) for place, word in enumerate(arguments) if not word.startswith("@")]
        command.unclear = str(problem)
    at = 0
    while at < len(words):
        word, place = words[at]
        at += 1
        if not word.startswith("-") or word == "-":
            if word.startswith("@"):
                command.passed = word  # it was not readable
            inputs.append(word)
            continue
        name, equals, value = word.partition("=")
        prefix = next((j for j in joined if word.startswith(j)), "")
        if word in positions["passed"] or name in positions["passed"]:
            command.passed = word
            command.flags.append(word)
            continue
        if word in positions["alone"] or word in table["results"] or word in table["dependencies"]:
            name, before, value = word, "", ""
            command.flags += [] if _named(command, name, "", "", place) else [word]
            continue
        if word in positions["values"] or word in joined:
            if at == len(words):
                command.passed = word  # the compiler will say what is missing
                break
            name, before, (value, place) = word, "", words[at]
            at += 1
        elif equals and (name in positions["values"] or name in joined):
            before = name + "="
        elif prefix:
            name, before, value = prefix, prefix, word[len(prefix) :]
        else:
            command.flags.append(word)
            continue
        if name in table["language"]:
            language = value
        elif _named(command, name, before, value, place):
            continue
        try:
            command.flags += _plain(table, name, value)
        except Unclear as problem:
            command.unclear = str(problem)
    every = language in table["cuda"]
    endings = tuple(table["inputs"])
    for one in inputs:
        cuda = every if language else one.endswith(endings)
        (command.sources if cuda else command.others).append(one)
    return command


class Unclear(Exception):
    """Words that the compiler, or the shell that it starts, takes apart in a way that is not copied here."""


def _plain(table: Table, name: str, value: str) -> list[str]:
    """An option with each of its values as words of their own."""
    if name in table["for_host"]:
        return [word for part in _parts(value, escapes=True) for word in _as_in_a_shell(_unescaped(part))]
    if name not in table["lists"]:
        return [name + value] if name in table["joined"] else [name, value]
    evaluated = name in table["evaluated"]
    if any(letter in value for letter in ("$`" if evaluated else "$`\\\"'")):
        raise Unclear(f"nvcc has a shell read '{value}'")
    parts = _parts(value, escapes=evaluated)
    return [word for part in parts for word in (name, _unescaped(part) if evaluated else part)]


def _parts(value: str, escapes: bool) -> list[str]:
    """The members of a list as nvcc takes it apart; other backslashes and quotes stay."""
    parts, quoted, escaped = [""], False, False
    for letter in value:
        if letter == "," and not quoted and not escaped:
            parts.append("")
            continue
        if letter == "," and escaped:
            parts[-1] = parts[-1][:-1]
        quoted ^= letter == '"' and not escaped
        escaped = escapes and letter == "\\" and not escaped
        parts[-1] += letter
    return [part for part in parts if part]


def _unescaped(text: str) -> str:
    """A text without its backslashes but those that stand behind one."""
    letters = iter(text)
    return "".join(next(letters, "") if letter == "\\" else letter for letter in letters)


def _as_in_a_shell(text: str) -> list[str]:
    """The words of a text that nvcc gives to a shell as it is."""
    if "$" in text or "`" in text:
        raise Unclear(f"nvcc has a shell read '{text}'")
    if not any(letter in text for letter in " \t\"'\\"):
        return [text]
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        raise Unclear(f"nvcc has a shell read '{text}'") from None


def _named(command: Command, name: str, before: str, value: str, place: int) -> bool:
    """Take note of what decides where results go; true if the words say nothing about what the sources mean."""
    table = command.table
    at = (place, before) if place >= 0 else None
    if name in table["results"]:
        command.ending = table["results"][name]
        return False
    if name in table["output"]:
        command.result, command.result_at = value, at
    elif name in table["dependencies"]:
        command.dependencies = True
    elif name in table["dependency_output"]:
        command.dependency_file, command.dependency_at = value, at
    elif name in table["dependency_target"]:
        command.dependency_target = True
    elif name in table["output_folder"]:
        command.elsewhere = True
    elif name in table["host_compiler"]:
        command.host_compiler, command.host_compiler_at = value, at
        command.hidden = command.hidden or place < 0
        return False
    else:
        return False
    command.hidden = command.hidden or place < 0
    return True


def words_of(
    arguments: Sequence[str], table: Table, environ: Mapping[str, str], folder: str
) -> Iterator[tuple[str, int]]:
    """All words with their places among the arguments, -1 for those of variables and files of options.

    A file that cannot be read stays as ``@NAME``; raises `Unclear` where nvcc and a shell read a text differently.
    """
    given = [*_of_variable(table["prepended"], environ), *((word, place) for place, word in enumerate(arguments))]
    yield from _with_files([*given, *_of_variable(table["appended"], environ)], table, folder)


def _with_files(
    words: Sequence[tuple[str, int]], table: Table, folder: str, depth: int = 0
) -> Iterator[tuple[str, int]]:
    """The words, with those of files of options in place of their names; such a file may name others."""
    if depth > _DEEPEST:
        raise Unclear("its files of options name each other")
    left = iter(words)
    for word, place in left:
        name, equals, value = word.partition("=")
        if name in table["options_files"]:
            files = (value if equals else next(left, ("", -1))[0]).split(",")
        elif word.startswith("@"):
            files = [word[1:]]
        else:
            yield word, place
            continue
        for file in files:
            found = _of_file(file, table, folder)
            if found is None:
                yield "@" + file, -1
            else:
                yield from _with_files([(one, -1) for one in found], table, folder, depth + 1)


def _of_variable(name: str, environ: Mapping[str, str]) -> Iterator[tuple[str, int]]:
    """The words of a variable, in which nvcc keeps the quotes; an error of the user's is nvcc's to tell."""
    text = environ.get(name, "") if name else ""
    if any(letter in text for letter in "\"'\\"):
        raise Unclear(f"{name} has quotes or backslashes")
    yield from ((word, -1) for word in text.split())


def _of_file(name: str, table: Table, folder: str) -> list[str] | None:
    """The words of a file of options: nvcc knows double quotes and a backslash of its own kind, clang a shell's.

    None if it cannot be read.
    """
    try:
        with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as file:
            text = file.read()
    except OSError:
        return None
    nvccs = table["name"] == "nvcc"
    if nvccs and any(letter in text for letter in "'\\"):
        raise Unclear(f"{name} has single quotes or backslashes")
    if '"' not in text and "'" not in text and "\\" not in text:
        return text.split()
    import shlex

    try:
        return shlex.split(text)
    except ValueError:
        raise Unclear(f"{name} has a quote without an end") from None
