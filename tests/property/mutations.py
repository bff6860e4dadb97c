"""Mutants of correct outputs: one record, wait or join taken away, moved by a statement, or given another target.

In: a text that kesco wrote. Out: `Mutant`s, the text of each, and one text that holds them all and takes on one of
them when it runs (`selectable`), so that many mutants cost one build. All of them keep the number of lines.

Programs of one file do not know each other, so that a *batch* may have one mutant in each of them.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

ORDER = re.compile(
    r"(?P<indent>\s*)(?P<guard>if \((?:[^()]|\([^()]*\))*\) )?"
    r"(?:cudaEventRecord\(kesco->(?P<recorded>done|tail)\[(?P<event>[^\]]*)\], kesco->stream\[(?P<stream>[^\]]*)\]"
    r"|cudaStreamWaitEvent\((?:kesco->stream\[(?P<waiter>[^\]]*)\]|(?P<legacy>cudaStreamLegacy)), "
    r"kesco->(?P<awaited>done|tail)\[(?P<cause>[^\]]*)\], 0)\);(?P<comment>\s*//.*)?"
)
ACTIONS = ("remove", "up", "down", "event", "stream")
_FUNCTION = re.compile(
    r"(?:static |struct )?(?:[\w*&]+ )*(?P<name>[A-Za-z]\w*?)(?:_helper\d+|_pick|_make|_Work)?(?:\(| \{)"
)
_STAYS = re.compile(
    r"(?:return|break|continue|goto|case|default|for|while|do|else|switch|if|KescoStreams|using)\b|[{}#]"
)
_SELECT = "kesco_mutant"
SELECTOR = f'#include <cstdlib>\nstatic const int {_SELECT} = std::atoi(std::getenv("KESCO_MUTANT"));\n#line 1\n'


@dataclass(frozen=True)
class Mutant:
    """What is done to which line (from 0), in which program."""

    line: int
    target: str  # record, wait, join record, join
    action: str
    program: str

    def __str__(self) -> str:
        return f"{self.target} in line {self.line + 1}: {self.action}"


def owners(lines: list[str]) -> list[str]:
    """For each line the program that it belongs to; none before the first function."""
    found, owner = [], ""
    start = next((n for n, line in enumerate(lines) if "kesco: end" in line), 0)
    for number, line in enumerate(lines):
        if number > start and line and line[0].isalpha() and (match := _FUNCTION.match(line)) and line.endswith("{"):
            owner = match["name"]
        found.append(owner)
    return found


def mutants(lines: list[str]) -> list[Mutant]:
    """All mutants of a text."""
    owner, sizes = owners(lines), _sizes(lines)
    found = []
    for number, line in enumerate(lines):
        order = ORDER.fullmatch(line)
        if order is None or not owner[number]:
            continue
        joins = "tail" in (order["recorded"], order["awaited"])
        target = ("join record" if joins else "record") if order["recorded"] else "join" if joins else "wait"
        possible = {
            "remove": True,
            "up": _may_pass(lines, number - 1, number),
            "down": _may_pass(lines, number + 1, number),
            "event": sizes[order["recorded"] or order["awaited"]] > 1,
            "stream": sizes["stream"] > 1 or bool(order["legacy"]),
        }
        found += [Mutant(number, target, action, owner[number]) for action in ACTIONS if possible[action]]
    return found


def _sizes(lines: list[str]) -> dict[str, int]:
    """How many streams and events the prologue makes."""
    text = "\n".join(lines).partition("kesco: end")[0]
    return {name: int(size) for name, size in re.findall(r"^  \w+ (stream|done|tail)\[(\d+)\] = ", text, re.MULTILINE)}


def _may_pass(lines: list[str], other: int, number: int) -> bool:
    """Whether the line beside is one whole statement in the same block, and not one that leaves it."""
    words = _bare(lines[other])
    if ORDER.fullmatch(lines[other]) is None and (not words.endswith(";") or _STAYS.match(words)):
        return False
    if "KescoStreams" in words or words.count("(") != words.count(")"):
        return False
    before = next((_bare(lines[n]) for n in range(other - 1, -1, -1) if _bare(lines[n]) and n != number), "{")
    return before[-1] in ";{}:" or before.startswith("#")


def _bare(line: str) -> str:
    return re.sub(r"\s*//.*", "", line).strip()


def _other(index: str, size: int) -> str:
    return str((int(index) + 1) % size) if index.isdigit() else f"({index} + 1) % {size}"


def _call(line: str, sizes: dict[str, int], choose: Callable[[str, str, str], str]) -> str:
    """The call again; `choose(action, as it is, as it would be)` says what is written where a target stands."""
    order = ORDER.fullmatch(line)
    assert order is not None
    kind = order["recorded"] or order["awaited"]
    index = order["event"] if order["recorded"] else order["cause"]
    event = f"kesco->{kind}[{choose('event', index, _other(index, sizes[kind]))}]"
    if order["legacy"]:
        stream = choose("stream", "cudaStreamLegacy", f"kesco->stream[{_other(index, sizes['stream'])}]")
    else:
        index = order["stream"] if order["recorded"] else order["waiter"]
        stream = f"kesco->stream[{choose('stream', index, _other(index, sizes['stream']))}]"
    if order["recorded"]:
        return f"cudaEventRecord({event}, {stream});"
    return f"cudaStreamWaitEvent({stream}, {event}, 0);"


def mutated(lines: list[str], chosen: Iterable[Mutant]) -> list[str]:
    """The text with some mutants, of different programs."""
    result, sizes = lines.copy(), _sizes(lines)
    for one in chosen:
        line, at = lines[one.line], one.line
        if one.action == "remove":
            result[at] = ";"
        elif one.action in ("up", "down"):
            beside = at + (1 if one.action == "down" else -1)
            result[at], result[beside] = result[beside], result[at]
        else:
            order = ORDER.fullmatch(line)
            assert order is not None
            call = _call(line, sizes, lambda action, plain, other, one=one: other if action == one.action else plain)
            result[at] = f"{order['indent']}{order['guard'] or ''}{call}{order['comment'] or ''}"
    return result


def batches(found: list[Mutant], most: int, seed: int) -> list[list[Mutant]]:
    """At most so many of each program, each kind in turn and joins last; a batch has one of each program."""
    drawn = random.Random(seed)
    by_program: dict[str, list[tuple[int, Mutant]]] = defaultdict(list)
    seen: dict[tuple[str, str, str], int] = defaultdict(int)
    for one in drawn.sample(found, len(found)):
        kind = (one.program, one.target, one.action)
        by_program[one.program].append((seen[kind] + one.target.startswith("join"), one))
        seen[kind] += 1
    kept = [[one for _, one in sorted(listed, key=lambda pair: pair[0])[:most]] for listed in by_program.values()]
    return [[listed[n] for listed in kept if n < len(listed)] for n in range(max(map(len, kept), default=0))]


def selectable(lines: list[str], numbered: list[list[Mutant]]) -> list[str]:
    """One text for all batches: with ``KESCO_MUTANT=n`` it behaves like batch n, with -1 as it was."""
    result, sizes = lines.copy(), _sizes(lines)
    before: dict[int, str] = defaultdict(str)
    behind: dict[int, str] = defaultdict(str)
    of_line: dict[int, dict[str, int]] = defaultdict(dict)
    for number, batch in enumerate(numbered):
        for one in batch:
            of_line[one.line][one.action] = number
    for at, actions in of_line.items():
        order = ORDER.fullmatch(lines[at])
        assert order is not None

        def choose(action: str, plain: str, other: str, known: dict[str, int] = actions) -> str:
            return f"{_SELECT} == {known[action]} ? {other} : {plain}" if action in known else plain

        plain = (order["guard"] or "") + _call(lines[at], sizes, choose)
        absent = [number for action, number in actions.items() if action in ("remove", "up", "down")]
        test = " && ".join(f"{_SELECT} != {number}" for number in absent)
        result[at] = f"{order['indent']}{f'if ({test}) ' if test else ''}{plain}"
        if "up" in actions:
            before[at - 1] += f"if ({_SELECT} == {actions['up']}) {plain} "
        if "down" in actions:
            behind[at + 1] += f" if ({_SELECT} == {actions['down']}) {plain}"
    return [
        f"{before[n]}{_bare(line) if n in behind else line}{behind[n]}" if n in before or n in behind else line
        for n, line in enumerate(result)
    ]
