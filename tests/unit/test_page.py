"""The report's page as a browser reads it: nothing is missing, nothing comes from elsewhere, everything is escaped."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import html5lib
import pytest
from by_hand import Op, diamond, region, result

from kesco.diagnostics import Diagnostic, Note, Severity
from kesco.ir.flow import Role
from kesco.ir.timeline import Bar, Lane, Timeline
from kesco.model.forecast import Prices
from kesco.model.timeline import timeline
from kesco.pipeline import Compilation, FunctionResult
from kesco.report import edges_of, movable
from kesco.report.page import page, timeline_page
from kesco.report.page.source_view import LONG_BLOCK, Row, explained, rows
from kesco.report.page.timeline_view import MOST_BARS, duration, merged, views
from kesco.source import Span

HTML = "{http://www.w3.org/1999/xhtml}"
EVIL = "</script><script>alert(1)</script> \"quoted\" & 'single' <b> ünïcödé 漢字 \u2028 {{ 7 * 7 }}"


def compiled(*functions: FunctionResult, source: bytes = b"a\n", text: bytes = b"a\n", **more: object) -> Compilation:
    return Compilation("a.cu", source, text, functions, **{"diagnostics": (), **more})


def parsed(text: str) -> ET.Element:
    """The page as a browser builds it; a text that a browser would have to mend is an error."""
    return html5lib.HTMLParser(strict=True).parse(text)


def with_class(tree: ET.Element, name: str) -> list[ET.Element]:
    return [one for one in tree.iter() if name in one.get("class", "").split()]


def words(element: ET.Element) -> str:
    return "".join(element.itertext())


def runs_of(function: FunctionResult) -> tuple[Timeline, ...]:
    serial = timeline("serial", function.region, Prices())
    return serial, timeline("concurrent", function.region, Prices(), function.schedule, function.plan)


@pytest.fixture(scope="module")
def whole() -> tuple[FunctionResult, str]:
    loops = [Op("update", r="a b", w="b"), Op("other", r="c", w="d c"), Op("mixed", r="b d", w="e")]
    function = result(region([*diamond(), *loops], loop=(7, 5)))
    return function, page(compiled(function, timelines=(runs_of(function),)))


# ---- nothing is missing ----------------------------------------------------------------------------------------------


def test_every_operation_and_every_dependence_is_there_once(whole: tuple[FunctionResult, str]) -> None:
    function, text = whole
    tree = parsed(text)
    ids = [one.get("id") for one in tree.iter() if one.get("id")]
    assert len(ids) == len(set(ids))
    assert {f"g0-{site.number}" for site in movable(function)} <= set(ids)
    assert {f"e0-{edge.source}-{edge.target}" for edge in edges_of(function)} <= set(ids)
    (data,) = json.loads(next(words(one) for one in tree.iter(f"{HTML}script") if one.get("id") == "data"))["functions"]
    assert set(data["operations"]) == {str(site.number) for site in movable(function)}
    drawn = [(one.get("id"), one.get("data-edge")) for one in with_class(tree, "edge") if one.get("data-edge")]
    assert drawn == [(f"e0-{e['source']}-{e['target']}", f"0-{n}") for n, e in enumerate(data["edges"])]
    assert {edge["kind"] for edge in data["edges"]} == {"wait", "stream", "removed"}
    assert any(edge["carried"] for edge in data["edges"])


def test_a_dependence_tells_buffer_kind_reason_and_whether_a_wait_is_needed(whole: tuple[FunctionResult, str]) -> None:
    tree = parsed(whole[1])
    (removed, *_) = [one for one in with_class(tree, "removed") if one.get("data-edge")]
    assert re.search(r"(RAW|WAR|WAW) on \w+: .* it; no wait: ", removed.get("aria-label", ""))
    (wait, *_) = [one for one in with_class(tree, "wait") if one.get("data-edge")]
    assert "waits for stream" in wait.get("aria-label", "")


def test_every_run_of_an_operation_is_on_the_timeline_and_the_critical_path_is_marked(
    whole: tuple[FunctionResult, str],
) -> None:
    function, text = whole
    serial, concurrent = runs_of(function)
    bars = with_class(parsed(text), "bar-item")
    assert len(bars) == len(serial.bars) + len(concurrent.bars)
    assert {one.get("data-op") for one in bars} == {f"0-{site.number}" for site in movable(function)}
    critical = [one for one in bars if "critical" in one.get("class", "").split()]
    assert len(critical) == sum(bar.critical for bar in concurrent.bars) > 0


def test_what_was_gained_and_lost_is_there_by_function() -> None:
    alone = result(region([Op("k", w="a")]), left_because="it contains goto")
    span = replace(alone.region.span, start=5, end=6, line=4)
    said = Diagnostic("K203", Severity.WARNING, "it writes", span, (Note("a note"),), "do this")
    outside = Diagnostic("K206", Severity.REMARK, "elsewhere")
    measured = (replace(runs_of(result(region(diamond())))[0], exact=True, end=30.0),)
    measured += (replace(measured[0], end=20.0),)
    both = (alone, result(region(diamond())))
    tree = parsed(page(compiled(*both, diagnostics=(said, outside), timelines=((), measured))))
    texts = words(tree)
    mine, _, file = [words(one) for one in tree.iter(f"{HTML}section") if "a.cu:3:1" in one.get("aria-label", "")][
        -2:
    ] + [words(one) for one in tree.iter(f"{HTML}section") if one.get("aria-labelledby") == "fo"]
    assert "K203" in mine and "K206" not in mine and "K206" in file and "K203" not in file
    for part in (
        "stays serial",
        "move the launches into a function without it",
        "K203 it writes line 4",
        "a note",
        "do this",
    ):
        assert part in texts
    assert "K206 elsewhere" in texts and "The file" in texts
    assert "4 operations on 2 streams" in texts and "2 waits between streams; 3 more are not needed" in texts
    assert "1.50 times as fast as serial in the model: 20.0 µs instead of 30.0 µs" in texts
    assert "as fast, in the model1.50×" in texts


# ---- nothing comes from elsewhere, everything is escaped -------------------------------------------------------------


def test_the_page_needs_nothing_and_runs_only_its_own_script(whole: tuple[FunctionResult, str]) -> None:
    text = whole[1]
    tree = parsed(text)
    for one in tree.iter():
        assert not {"src", "srcset", "action", "data", "style", "onclick", "onload"} & set(one.attrib), one.attrib
        assert one.get("href", "#").startswith("#")
        assert one.tag not in {f"{HTML}{name}" for name in ("link", "img", "iframe", "object", "embed", "base")}
    assert not re.search(r"https?:|@import|url\((?!#)", text.replace("http://www.w3.org/", ""))
    (policy,) = [m.get("content", "") for m in tree.iter(f"{HTML}meta") if m.get("http-equiv")]
    assert policy.startswith("default-src 'none'; ") and "unsafe" not in policy
    texts = [words(one) for one in tree.iter(f"{HTML}style")]
    texts += [words(one) for one in tree.iter(f"{HTML}script") if one.get("type") is None]
    assert len(texts) == 2
    for one in texts:
        assert f"'sha256-{base64.b64encode(hashlib.sha256(one.encode()).digest()).decode()}'" in policy


def test_whatever_a_program_says_is_only_text() -> None:
    function = result(region([Op(EVIL, w="a"), Op("k", w=EVIL.replace(" ", "_")), Op("m", r="a", w="b", note=EVIL)]))
    function = replace(function, region=replace(function.region, function=EVIL))
    source = (EVIL + "\n").encode() + b"\xff\xfe broken \x00\x1b[31m\x07\r\nlast\twithout end"
    said = Diagnostic("K203", Severity.WARNING, EVIL, Span("a.cu", 0, 1, 1, 1), (Note(EVIL),), EVIL)
    made = Compilation(EVIL, source, b"//" + source, (function,), (said,), timelines=(runs_of(function),))
    tree = parsed(page(made))
    assert len(list(tree.iter(f"{HTML}script"))) == 2 and not list(tree.iter(f"{HTML}b"))
    shown = words(tree)
    assert shown.count("alert(1)") > 8 and "{{ 7 * 7 }}" in shown and "漢字" in shown
    assert "�� broken ␀␛[31m␇" in shown
    assert "\r" not in page(made)


# ---- source beside source --------------------------------------------------------------------------------------------


def text_of(row: Row, side: str) -> str:
    return "".join(run.text for run in (row.before if side == "left" else row.after))


def test_lines_of_both_texts_stand_side_by_side_and_inserted_ones_say_what_they_do() -> None:
    source = b"int a;\r\n\r\n  k<<<1, 2>>>(a);\r\nend\r\n"
    text = (
        b"int a;\r\n\r\n  wait();  // kesco: wait for j (RAW on x)\r\n  k<<<1, 2, 0, kesco->stream[3]>>>(a);\r\nend\r\n"
    )
    at = source.index(b"k<<<")
    middle = source.index(b">>>")
    kept = [(0, at, 0), (at, middle, text.index(b"k<<<")), (middle, len(source), text.index(b">>>"))]
    found = rows(source, text, kept)
    sides = [(row.left, row.right, row.kind) for row in found]
    assert sides == [(1, 1, "same"), (2, 2, "same"), (None, 3, "added"), (3, 4, "changed"), (4, 5, "same")]
    assert [text_of(row, "right") for row in found] == [line.rstrip("\r") for line in text.decode().split("\n")[:-1]]
    assert found[2].why == "wait for j (RAW on x)" and found[3].why == "Runs on stream 3."
    assert "".join(run.text for run in found[3].after if run.added) == ", 0, kesco->stream[3]"
    assert {run.token for row in found for run in row.before} >= {"kw", "nu"}


def test_no_line_is_left_out_where_nobody_knows_what_was_kept() -> None:
    source, text = b"a\nb\nc\nd", b"x\na\nc\nd\ny\n"
    found = rows(source, text, ())
    assert [row.left for row in found if row.left] == [1, 2, 3, 4]
    assert [row.right for row in found if row.right] == [1, 2, 3, 4, 5]
    assert [(row.left, row.right, row.kind) for row in found][:3] == [
        (None, 1, "added"),
        (1, 2, "same"),
        (2, None, "removed"),
    ]


def test_long_stretches_are_folded_but_lines_beside_a_change_stay_in_sight() -> None:
    prologue = b"".join(b"p%d\n" % n for n in range(LONG_BLOCK))
    before, after = (b"".join(b"%c%d\n" % (letter, n) for n in range(40)) for letter in b"sz")
    found = rows(
        before + after,
        before + prologue + after,
        [(0, len(before), 0), (len(before), len(before + after), len(before + prologue))],
    )
    blocks: dict[int, list[Row]] = {}
    for row in found:
        blocks.setdefault(row.block, []).append(row)
    assert [len(blocks[n]) for n in (1, 2, 3)] == [36, LONG_BLOCK, 36]
    assert {row.kind for row in blocks[2]} == {"added"} and blocks[2][0].why.startswith("The prologue")
    assert all(row.block == 0 for row in rows(before, before, ()))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("cudaEventRecord(k->done[2], k->stream[1]);  // kesco: x waits", "Event 2 marks this point of stream 1: x"),
        ("cudaStreamWaitEvent(k_2->stream[i], k_2->done[4], 0);", "Stream i pauses here until event 4 has passed"),
        ("cudaStreamWaitEvent(cudaStreamLegacy, kesco->tail[0], 0);", "The default stream pauses"),
        ("int x;", "Inserted by kesco."),
    ],
)  # fmt: skip
def test_an_inserted_line_is_explained(line: str, words: str) -> None:
    assert explained(line.encode()).startswith(words)


# ---- timelines -------------------------------------------------------------------------------------------------------


def test_the_critical_path_is_the_chain_that_ends_last() -> None:
    ops = [Op("a", w="x"), Op("b", w="y"), Op("c", r="x y", w="z"), Op("d", r="x y", w="q")]
    function = result(region(ops))
    streams = function.schedule.as_dict()
    assert streams[4] == streams[1] != streams[2]  # d is behind a on its stream, and waits for b, which ends later
    concurrent = runs_of(function)[1]
    assert [bar.label for bar in sorted(concurrent.bars, key=lambda bar: bar.start) if bar.critical] == ["b", "d"]
    last = next(bar for bar in concurrent.bars if bar.label == "d")
    assert last.end == concurrent.end and all(bar.end <= last.start for bar in concurrent.bars if bar.label in "ab")


def test_a_chain_leads_across_a_barrier() -> None:
    ops = [Op("a", w="x"), Op("sync", role=Role.DEVICE_SYNC), Op("c", w="x"), Op("d", w="y"), Op("e", w="z")]
    function = result(region(ops))
    streams = function.schedule.as_dict()
    assert streams[5] != streams[1]
    assert sorted(bar.label for bar in runs_of(function)[1].bars if bar.critical) == ["a", "e"]


def test_a_hundred_thousand_bars_are_few_enough_to_open() -> None:
    bars = tuple(Bar("k", "kernel", n * 2.0, n * 2.0 + 1, critical=n == 70_000) for n in range(100_000))
    lane = Lane("stream 7", (*bars, Bar("long", "kernel", 300_000.0, 400_000.0)), 7)
    (view,) = views([Timeline("measured", (lane,), 400_000.0)], 8)
    (drawn,) = view["lanes"]
    assert 500 < len(drawn["bars"]) <= MOST_BARS + 1
    assert sum(bar["critical"] for bar in drawn["bars"]) == 1
    groups = list(merged(lane.bars, 200.0))
    assert sum(one.count for one in groups) == 100_001 and groups[-1].label == "long"
    starts = [one.start for one in groups]
    assert starts == sorted(starts) and all(a.end <= b.start for a, b in pairwise(groups))
    assert len(with_class(parsed(timeline_page("t", [("1", "x")], [Timeline("m", (lane,), 4e5)])), "bar-item")) == len(
        drawn["bars"]
    )


@pytest.mark.parametrize(
    ("time", "of", "text"),
    [
        *((0.0, None, "0 ns"), (0.25, None, "250 ns"), (1.5, None, "1.50 µs"), (12_345.0, None, "12.3 ms")),
        *((2e6, None, "2.00 s"), (50.0, 2e3, "0.05 ms")),
    ],
)  # fmt: skip
def test_times_are_in_the_unit_that_fits(time: float, of: float | None, text: str) -> None:
    assert duration(time, of) == text


def test_ticks_are_round_and_within_the_whole() -> None:
    def ticks(end: float) -> Iterator[tuple[float, str]]:
        (view,) = views([Timeline("t", (), end)], 8)
        return ((float(one["x"]), one["text"]) for one in view["ticks"])

    for end in (0.37, 9.0, 123.4, 88_000.0, 5e7):
        found = list(ticks(end))
        assert 4 <= len(found) <= 11 and found[0][0] == 0 and all(0 <= x < 100 for x, _ in found)
    assert [text for _, text in ticks(9.0)][:3] == ["0 µs", "2.00 µs", "4.00 µs"]


def test_weights_are_parts_of_the_serial_run_also_where_the_other_is_longer() -> None:
    bar = Bar("k", "kernel", 0.0, 2.0)
    runs = [
        Timeline(name, (Lane("s", (bar,), 9),), end, exact=False) for name, end in (("serial", 4.0), ("other", 10.0))
    ]
    first, second = views(runs, 8)
    assert (first["end"], second["end"]) == ("100 %", "250 %")
    assert second["lanes"][0]["bars"][0]["said"].splitlines()[1] == "weight 50.0 % of the serial function"
    assert second["lanes"][0]["bars"][0]["width"] == "20.0000" and second["lanes"][0]["swatches"] == 2
    assert [tick["text"] for tick in first["ticks"]] == ["0 %", "50 %", "100 %", "150 %", "200 %"]
    assert [float(tick["x"]) for tick in first["ticks"]] == [0.0, 20.0, 40.0, 60.0, 80.0]
