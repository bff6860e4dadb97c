"""Tasks: parts of a program that are independent in their author's eyes, each with a priority.

A *task* is marked in the text: a statement, a function or the launches of a kernel. Its operations are those whose text
lies in what is marked, and in functions that are called there. `Site.task` is the name of a site's task.
"""

from __future__ import annotations

from dataclasses import dataclass

from kesco.source import Span

LOWEST, HIGHEST = 0, 9
"""The range of priorities; 9 comes first."""


@dataclass(frozen=True, slots=True)
class Task:
    """One ``#pragma kesco task priority(p) name(n)``; pragmas of one name are one task.

    `span` is the pragma's place, `marked` the statement or function that follows it.
    """

    name: str
    priority: int
    span: Span
    marked: Span


def zone_name(name: str) -> str:
    """What messages call a task: its name in quotes, or what stands for all work outside tasks."""
    return f"'{name}'" if name else "work of no task"
