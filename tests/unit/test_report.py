"""Words and pictures of hand-made functions: nothing found goes unsaid, and every form can be read again."""

from __future__ import annotations

import itertools
import json
import random
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
from by_hand import Op, diamond, region, result
from counting import calls

from kesco.diagnostics import Diagnostic, Severity
from kesco.ir.access import AccessMode
from kesco.ir.flow import Role, SiteKind
from kesco.ir.verdicts import Verdict, Word
from kesco.options import Options
from kesco.pipeline import Compilation, FunctionResult, compile_file
from kesco.report import edges_of
from kesco.report.drawing import PALETTE, drawing
from kesco.report.explain import explain
from kesco.report.graph import FORMS, draw
from kesco.report.helps import help_for
from kesco.report.layout import BOX_GAP, lay_out, levels, wrap
from kesco.source import Span

SVG = "{http://www.w3.org/2000/svg}"


def words(*functions: FunctionResult, diagnostics: tuple[Diagnostic, ...] = ()) -> str:
    return explain(Compilation("a.cu", b"", b"x", functions, diagnostics))


def picture(*functions: FunctionResult) -> ET.Element:
    return ET.fromstring(draw(functions, "svg"))


def texts(svg: ET.Element) -> list[str]:
    return [e.text or "" for e in svg.iter(f"{SVG}text")]


def read(*functions: FunctionResult) -> list[dict]:
    value = json.loads(draw(functions, "json"))
    assert value["version"] == 1
    return value["functions"]


# ---- words -------------------------------------------------------------------------------------------------


def test_every_operation_says_what_it_touches_where_it_goes_and_what_it_waits_for() -> None:
    text = words(result(region(diamond())))
    assert "a.cu: 1 function, 1 rewritten" in text
    assert "work (a.cu:3:1): 4 operations on 2 streams\n  width 2, 3 levels, 2 waits (3 not needed), 1 join" in text
    lines = text.splitlines()
    at = next(i for i, line in enumerate(lines) if " right " in line)
    assert lines[at].split(None, 2) == ["13:3", "right", "stream 1; reads a; writes c"]
    assert lines[at + 1].strip() == "waits for first on stream 0: RAW on a: first writes it, right reads it"
    assert "no wait for first (RAW on a): first and left are on stream 0" in text
    assert re.search(r"no wait for first \(RAW on a\): .* already orders? it", text)
    assert "the default stream waits for stream 1 first" in text


def test_modes_are_one_group_each_and_buffers_named_once() -> None:
    text = words(result(region([Op("k", r="x y z", w="z q"), Op("other", w="p")])))
    assert "reads x, y; reads and writes z; writes q" in text


def test_a_buffer_read_here_and_written_there_is_read_and_written() -> None:
    area = region([Op("k", r="x"), Op("other", w="p")])
    twice = (*area.sites[1].accesses, *(replace(a, mode=AccessMode.WRITE) for a in area.sites[1].accesses))
    sites = (area.sites[0], replace(area.sites[1], accesses=twice), *area.sites[2:])
    assert "; reads and writes x" in words(result(replace(area, sites=sites)))


def test_a_serial_function_says_why_how_to_help_and_what_comes_after_what() -> None:
    chain = [Op("a", w="x"), Op("b", r="x", w="y")]
    why = "no two of its operations are independent"
    given = Verdict(Word.CHAIN, region([]).span, "a → b (x)", why)
    text = words(replace(result(region(chain), left_because=why), verdict=given))
    assert "work (a.cu:3:1): stays serial: no two of its operations are independent" in text
    assert "after a: RAW on x: a writes it, b reads it" in text
    assert "  verdict: a chain: a → b (x)" in text
    assert "lost opportunities" not in text, "a chain loses nothing"
    assert "stream 0" not in text


def test_a_function_without_device_work_is_one_line() -> None:
    text = words(result(region([]), left_because="it launches nothing that could be moved"))
    assert text.splitlines()[2:] == ["work (a.cu:3:1): stays serial: it launches nothing that could be moved"]


def test_lost_opportunities_are_named_with_place_reason_and_help() -> None:
    ops = [
        Op(
            "copy#1",
            w="a",
            role=Role.LEGACY,
            kind=SiteKind.COPY,
            note="the host may have to wait for it here",
        ),
        Op(
            "copy#2",
            w="b",
            role=Role.LEGACY,
            kind=SiteKind.COPY,
            note="the host may have to wait for it here",
        ),
        Op("k", r="a", w="?"),
        Op("sync", role=Role.DEVICE_SYNC, kind=SiteKind.SYNC),
        Op("l", r="b", w="c"),
        Op("call", role=Role.JOIN, kind=SiteKind.CALL),
        Op("m", w="e"),
    ]
    text = words(result(region(ops)))
    lost = text.partition("lost opportunities\n")[2]
    assert "11:3  copy#1,2: on the default stream, a barrier for all: the host may have to wait for it here" in lost
    assert "help: where the host need not wait, call the asynchronous form" in lost
    assert "13:3  k: ordered against everything: writes memory that is not known: parameter 1 may point" in lost
    assert "help: allocate what it uses in this file, or mark pointers __restrict__" in lost
    assert lost.count("help: ") == 2


def test_nothing_lost_is_not_mentioned() -> None:
    assert "lost opportunities" not in words(result(region(diamond())))


def test_iterations_of_one_operation_are_one_card() -> None:
    many = [Op(f"k#{i + 1}", r="s", w=f"x[{i}]", trip=(i, 6), operation=70) for i in range(6)]
    text = words(result(region([*many, Op("sum", r=" ".join(f"x[{i}]" for i in range(6)), w="y")])))
    (line,) = [line for line in text.splitlines() if line.strip().startswith("80:3")]
    assert line.split(None, 2)[1:] == ["k#1…6", "stream 0…5; reads s; writes x[0…5] (for i = 0…5: 6 times)"]
    assert text.count("waits for k#") == 5


def test_iterations_that_differ_are_kept_apart() -> None:
    many = [Op(f"k#{i + 1}", r="s" if i else "t", w=f"x[{i}]", trip=(i, 3), operation=70) for i in range(3)]
    text = words(result(region(many)))
    assert "k#1  " in text and "reads t; writes x[0] (for i = 0)" in text
    assert "k#2,3" in text and "(for i = 1,2: 2 times)" in text


def test_numbers_in_names_stay_as_they_are() -> None:
    many = [Op("k", r="w007", w=f"x[{i * 2}]", trip=(i, 3), operation=70) for i in range(3)]
    assert "reads w007; writes x[0,2…4]" in words(result(region(many)))


def test_streams_that_come_around_are_said_to() -> None:
    many = [Op(f"k#{i + 1}", w=f"x[{i}]", trip=(i, 8), operation=70) for i in range(8)]
    assert "k#1…8  stream 0…3 in turn; writes x[0…7]" in words(result(region(many), streams=4))


def test_carried_dependences_and_loops_are_said_to_be() -> None:
    ops = [Op("a", r="y", w="x"), Op("b", r="y", w="v"), Op("c", w="y"), Op("after", w="y")]
    text = words(result(region(ops, loop=(3, 1))))
    assert "waits for c on stream 1: RAW on y: c writes it (in an earlier iteration), a reads it" in text
    assert "no wait for c (RAW on y around a loop): c and b are on stream 1" in text
    assert "no wait for b (WAR on y): b and c are on stream 1" in text
    assert re.search(r"11:3 +a +stream 0; reads y; writes x \(in a loop\)", text)
    assert re.search(r"14:3 +after +stream 1; writes y$", text, re.MULTILINE)


def test_guards_and_fences_are_said() -> None:
    text = words(result(region([Op("a", w="x"), Op("b", w="y")], guards=("p", "q->r"), open=True)))
    assert "checked at run time: p, q->r share no memory" in text
    assert "the default stream is made a barrier first" in text


def test_a_file_without_functions_says_what_the_diagnostics_say() -> None:
    done = Diagnostic("K206", Severity.REMARK, "a.cu is already kesco's output: left as it is")
    text = words(diagnostics=(done,))
    assert text == "a.cu: nothing to explain\n  a.cu is already kesco's output: left as it is"


def test_every_reason_has_advice() -> None:
    reasons = [
        "the host may have to wait for it here",
        "its <<<…>>> comes from the body of a macro",
        "k uses a stream of its own (line 3)",
        "the file uses OpenMP",
        "it contains goto (line 9)",
        "its body is not visible",
        "line 7: two operations share one statement",
    ]
    advice = [help_for(reason) for reason in reasons]
    assert len(set(advice)) == len(reasons)
    assert all(advice) and not help_for("something new")


# ---- JSON --------------------------------------------------------------------------------------------------


def test_json_holds_everything_in_a_fixed_order() -> None:
    function = result(region(diamond()))
    (value,) = read(function)
    assert [value[k] for k in ("name", "file", "line", "streams", "width", "levels")] == [
        "work",
        "a.cu",
        3,
        2,
        2,
        3,
    ]
    assert [o["label"] for o in value["operations"]] == ["entry", "first", "left", "right", "last", "end"]
    assert value["operations"][2] == {
        "id": 2, "label": "left", "kind": "kernel", "role": "movable", "line": 12, "column": 3, "stream": 0,
        "level": 2, "iteration": [], "note": "",
        "accesses": [
            {"buffer": "a", "mode": "r", "why": "gives a"}, {"buffer": "b", "mode": "w", "why": "gives b"},
        ],
    }  # fmt: skip
    pairs = [(d["from"], d["to"], d["kind"], d["buffer"], d["carried"]) for d in value["dependences"]]
    assert pairs == sorted(pairs) and (1, 4, "RAW", "a", False) in pairs
    assert value["dependences"][0]["reason"] == "RAW on a: first writes it, left reads it"
    both = {(w["from"], w["to"]) for w in value["waits"]} | {(w["from"], w["to"]) for w in value["removed"]}
    assert both == {(a, b) for a, b, *_ in pairs} and len(value["waits"]) == 2
    assert all(one["because"] for one in value["removed"])
    assert value["joins"] == [{"before": 5, "streams": list(function.plan.joins[0].streams)}]
    assert draw([function], "json") == draw([result(region(diamond()))], "json")


def test_json_of_a_function_left_as_it_is_has_no_streams_and_no_waits() -> None:
    (value,) = read(result(region(diamond()), left_because="it contains goto"))
    assert value["left_because"] == "it contains goto" and not value["rewritten"]
    assert value["streams"] == 0 and value["waits"] == value["removed"] == value["joins"] == []
    assert {o["stream"] for o in value["operations"]} == {None} and len(value["dependences"]) == 5


def test_json_knows_iterations_and_fences() -> None:
    ops = [Op(f"k#{i}", w=f"x[{i}]", trip=(i, 2), operation=7) for i in range(2)]
    (value,) = read(result(region(ops, open=True)))
    assert value["operations"][2]["iteration"] == [{"counter": "i", "value": 1, "index": 1, "trips": 2}]
    assert value["fences"] == [1]


# ---- DOT ---------------------------------------------------------------------------------------------------


def test_dot_tells_waits_stream_order_removed_and_carried_apart() -> None:
    ops = [*diamond(), Op("again", r="d", w="a")]
    function = result(region(ops, loop=(5, 1)))
    text = draw([function], "dot")
    style = dict(re.findall(r"f0_(\d+ -> f0_\d+) \[style=(\w+)", text))
    expected = {
        f"{e.source} -> f0_{e.target}": "dotted"
        if e.carried
        else {"wait": "solid", "stream": "bold", "removed": "dashed"}[e.kind]
        for e in edges_of(function)
    }
    assert style == expected and set(style.values()) == {"dotted", "solid", "bold", "dashed"}
    assert "no wait: " in text and PALETTE[1][0] in text


def test_dot_escapes_names() -> None:
    text = draw([result(region([Op('operator"\\<', w="x"), Op("b", r="x")]))], "dot")
    assert r"operator\"\\<" in text
    for line in text.splitlines():
        assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0


# ---- SVG ---------------------------------------------------------------------------------------------------


def test_svg_has_a_box_for_each_movable_operation_and_a_line_for_each_edge() -> None:
    ops = [Op("copy", w="a", role=Role.LEGACY, kind=SiteKind.COPY, note="it stays"), *diamond()]
    function = result(region(ops))
    svg = picture(function)
    labels = [e.text for e in svg.iter(f"{SVG}text") if "label" in (e.get("class") or "")]
    assert labels == ["first", "left", "right", "last"]
    lines = [e for e in svg.iter(f"{SVG}path") if (e.get("class") or "").startswith("edge")]
    legend = 4
    assert len(lines) - legend == len(edges_of(function)) == 5
    titles = [e.text or "" for e in svg.iter(f"{SVG}title")]
    assert any("RAW on b: left writes it, last reads it" in t for t in titles)
    assert any("first at a.cu:12:3, stream 0" in t and "w a: gives a" in t for t in titles)
    assert "s1" in texts(svg) and "stream 1" in texts(svg)


def test_svg_stands_for_itself_and_knows_dark_ground() -> None:
    text = draw([result(region(diamond()))], "svg")
    assert "prefers-color-scheme: dark" in text
    assert re.findall(r'(?:href|src)="|url\((?!#tip)|@import|<script', text) == []
    tips = set(re.findall(r"url\(#([\w-]+)\)", text))
    assert tips <= set(re.findall(r'<marker id="([\w-]+)"', text))


def test_svg_escapes_names() -> None:
    svg = picture(result(region([Op("scale<float&>", w="a<b>"), Op("b", r="a<b>")])))
    assert "scale<float&>" in texts(svg) and "w  a<b>" in texts(svg)


def test_svg_draws_functions_one_below_another_and_notes_empty_ones() -> None:
    empty = result(region([]), left_because="it launches nothing that could be moved")
    svg = picture(result(region(diamond())), empty, result(region(diamond())))
    heads = [e for e in svg.iter(f"{SVG}text") if "head" in (e.get("class") or "")]
    tops = [float(e.get("y") or 0) for e in heads]
    assert tops == sorted(tops) and len(tops) == 3 and tops[2] - tops[1] < 80
    assert "nothing that could be moved: it launches nothing that could be moved" in texts(svg)
    assert float(svg.get("height") or 0) > tops[2] + 200


def test_svg_without_functions_is_still_a_picture() -> None:
    assert picture().tag == f"{SVG}svg"


def test_svg_shows_barriers_between_phases() -> None:
    ops = [Op("a", w="x"), Op("b", w="y"), Op("sync", role=Role.DEVICE_SYNC), Op("c", w="x"), Op("d", w="y")]
    svg = picture(result(region(ops)))
    assert "full barrier: sync" in texts(svg) and texts(svg).count("level 1") == 2


def test_svg_draws_edges_to_itself_and_backwards() -> None:
    area = region([Op("a", r="y x", w="x"), Op("b", r="x", w="y"), Op("c", w="z")], loop=(3, 1))
    function = result(area, streams=3)
    assert {(1, 1), (2, 1)} <= {(e.source, e.target) for e in edges_of(function)}
    paths = [e for e in picture(function).iter(f"{SVG}path") if "carried" in (e.get("class") or "")]
    assert len(paths) - 1 == sum(e.carried for e in edges_of(function))


@pytest.mark.parametrize("form", FORMS)
def test_the_same_twice(form: str) -> None:
    assert draw([result(region(diamond()))], form) == draw([result(region(diamond()))], form)


@pytest.mark.parametrize("form", FORMS)
def test_a_name_that_is_not_unicode_can_be_written(form: str) -> None:
    area = replace(region(diamond()), span=Span("caf\udce9.cu", 0, 9, 1, 1))
    draw([result(area)], form).encode()
    words(result(area)).encode()


def test_more_streams_than_colours() -> None:
    svg = picture(result(region([Op(f"k{i}", w=f"x{i}") for i in range(20)]), streams=20))
    assert {f"s{i}" for i in range(20)} <= set(texts(svg))


# ---- layout ------------------------------------------------------------------------------------------------


def boxes(svg: ET.Element) -> list[tuple[float, float, float, float]]:
    found = []
    for group in svg.iter(f"{SVG}g"):
        place = re.match(r"translate\((\S+) (\S+)\)", group.get("transform") or "")
        if place:
            rect = next(e for e in group if e.get("class", "").startswith("box"))
            found.append((float(place[1]), float(place[2]), float(rect.get("width")), float(rect.get("height"))))
    return found


def random_ops(count: int, seed: int) -> list[Op]:
    pick = random.Random(seed)
    ops = []
    for i in range(count):
        reads = [f"x{pick.randrange(max(1, i))}" for _ in range(pick.randrange(4))]
        ops.append(Op(f"kernel_{i}", r=" ".join(reads), w=f"x{i}" if pick.random() < 0.8 else f"x{i // 2}"))
    return ops


@pytest.mark.parametrize("seed", range(4))
def test_no_two_boxes_overlap_and_all_are_on_the_page(seed: int) -> None:
    svg = picture(result(region(random_ops(40, seed), loop=(40, 1) if seed % 2 else None)))
    placed = boxes(svg)
    assert len(placed) == 40
    for (ax, ay, aw, ah), (bx, by, bw, bh) in itertools.combinations(placed, 2):
        assert ax + aw <= bx or bx + bw <= ax or ay + ah <= by or by + bh <= ay
    width, height = float(svg.get("width") or 0), float(svg.get("height") or 0)
    assert all(x >= 0 and y >= 0 and x + w <= width and y + h <= height for x, y, w, h in placed)


def test_text_fits_its_box() -> None:
    long = " ".join(f"a_rather_long_buffer_{i}" for i in range(12))
    svg = picture(result(region([Op("a_kernel_with_quite_a_long_name_indeed", r=long, w="y"), Op("b", r=long, w="z")])))
    for group in (g for g in svg.iter(f"{SVG}g") if g.get("transform")):
        width = next(float(e.get("width")) for e in group if e.tag == f"{SVG}rect")
        for one in group.iter(f"{SVG}text"):
            letter = 7.53 if "label" in one.get("class", "") else 6.03
            if one.get("text-anchor") != "end":
                assert float(one.get("x")) + len(one.text or "") * letter <= width
    assert any("+11" in t for t in texts(svg))


def test_edges_run_around_boxes() -> None:
    # 1 → 2 → 3 → 4 and 1 → 4: the long edge passes two rows
    layout = lay_out(
        [(1,), (2,), (3,), (4,)], dict.fromkeys((1, 2, 3, 4), (80.0, 40.0)), [(1, 2), (2, 3), (3, 4), (1, 4)]
    )
    inner = layout.routes[1, 4][1:-1]
    assert len(inner) == 4
    for x, y in inner:
        for box in (2, 3):
            left, top = layout.corners[box]
            assert not (left < x < left + 80 and top <= y <= top + 40)


def test_rows_are_ordered_to_cross_less() -> None:
    size = dict.fromkeys(range(8), (60.0, 30.0))
    crossed = [(0, 7), (1, 6), (2, 5), (3, 4)]
    layout = lay_out([(0, 1, 2, 3), (4, 5, 6, 7)], size, crossed)
    ends = sorted((layout.corners[a][0], layout.corners[b][0]) for a, b in crossed)
    assert [b for _, b in ends] == sorted(b for _, b in ends)
    xs = sorted(layout.corners[n][0] for n in range(4))
    assert all(b - a >= 60 + BOX_GAP - 1e-6 for a, b in itertools.pairwise(xs))


def test_an_edge_upwards_starts_at_its_source() -> None:
    layout = lay_out([(1,), (2,), (3,)], dict.fromkeys((1, 2, 3), (80.0, 40.0)), [(1, 2), (2, 3), (3, 1)])
    route = layout.routes[3, 1]
    assert route[0][1] == layout.corners[3][1] and route[-1][1] == layout.corners[1][1] + 40


def test_levels_are_longest_chains() -> None:
    assert levels([1, 2, 3, 4, 5], [(1, 2), (2, 3), (1, 3), (4, 3)]) == ((1, 4, 5), (2,), (3,))
    assert wrap(range(33), 16) == [tuple(range(11)), tuple(range(11, 22)), tuple(range(22, 33))]


@pytest.mark.parametrize("form", FORMS)
def test_a_drawing_of_a_large_graph_is_not_out_of_proportion(form: str) -> None:
    large, small = (result(region(random_ops(count, 7))) for count in (400, 100))
    assert calls(lambda: draw([large], form)) < 6 * calls(lambda: draw([small], form))


def test_a_long_chain_in_words_and_lines_is_not_out_of_proportion() -> None:
    def chain(count: int) -> FunctionResult:
        return result(region([Op(f"k#{i}", r=f"x{i} x0 x{i // 2}", w=f"x{i + 1}") for i in range(count)]), streams=4)

    large, small = chain(400), chain(100)
    for work in (lambda one: draw([one], "svg"), words):
        assert calls(lambda work=work: work(large)) < 6 * calls(lambda work=work: work(small))


def test_reports_do_not_load_what_they_may_not_need() -> None:
    code = "import sys, kesco.report.explain, kesco.report.graph, kesco.ir.text; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jinja2", "networkx"} & set(done.stdout.split())


@pytest.mark.usefixtures("toolchain")
def test_waits_that_are_taken_out_part_no_rows() -> None:
    path = Path(__file__).parents[2] / "examples/08_copies/copies.cu"
    (main,) = (f for f in compile_file(str(path), Options(copies="move")).functions if f.rewritten)
    assert main.plan.needless
    assert drawing(main, 0.0)["lines"] == []
