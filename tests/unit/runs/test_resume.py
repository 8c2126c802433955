"""Going on with an output file: nothing lost, nothing doubled, and another run's file refused."""

import json
import os

import pytest

from isograde import GradeFailure, Judge, ServerError, UserError
from isograde.datasets import read_rows
from isograde.runs.results import ResultWriter
from isograde.runs.resume import begun
from isograde.runs.score import score
from servers.fault import FaultServer

ROWS = [
    {
        "id": f"r{i}",
        "input": "q – ✓",
        "output": f"answer {i}\u2028💡",
        "expected": "b",
        "gold": i % 5,
        "group": str(i // 2),
        "tag": [i],
    }
    for i in range(8)
]
ROWS[3]["output"] = " "  # level 0 by the rubric's rule, unasked


@pytest.fixture
def server():
    with FaultServer() as running:
        yield running


@pytest.fixture
def out(tmp_path):
    return tmp_path / "grades.jsonl"


def run(
    server,
    out,
    rows=ROWS,
    *,
    rubrics=("answer_correctness",),
    limit=None,
    store=None,
    on_grade=lambda *_: None,
    told=None,
    **options,
):
    """What ``isograde score`` does with an output file; returns the summaries."""
    options = {"model": "m", "max_retries": 0, **options}
    first = Judge(rubric=rubrics[0], base_url=server.base_url, store=store, **options)
    judges = [first, *(first.with_rubric(name) for name in rubrics[1:])]
    labels = {judge.rubric.name: judge.rubric.labels for judge in judges}
    found = begun(out)
    with first, ResultWriter(out, labels, append=found is not None) as writer:
        tell = (lambda _said: None) if told is None else told.append
        return score(read_rows(rows), judges, writer=writer, limit=limit, found=found, on_grade=on_grade, tell=tell)


def timeless(content):
    lines = [json.loads(line) for line in content.decode().splitlines() if line]
    return [{**line, "latency_s": None} for line in lines]


def test_a_finished_file_is_left_as_it_is(server, out):
    [first] = run(server, out)
    before, asked, seen, told = out.read_bytes(), sum(server.asked.values()), [], []
    [again] = run(server, out, on_grade=lambda row, grade: seen.append((row.index, grade.level)), told=told)
    assert out.read_bytes() == before
    assert sum(server.asked.values()) == asked == 7
    assert [index for index, _ in seen] == list(range(8))
    assert told == [f"going on with {out}: 8 graded rows are kept"]
    assert (again.n, again.n_kept, again.mean_score, again.mae, again.n_by_rule) == (8, 8, first.mean_score, first.mae, 1)
    assert (first.input_tokens, again.input_tokens) == (7 * 180, 0)


@pytest.mark.parametrize("rubrics", [("answer_correctness",), ("answer_correctness", "relevance")])
def test_cut_at_any_byte_it_goes_on_to_the_same_file(server, out, tmp_path, rubrics):
    store = tmp_path / "store.sqlite"
    run(server, out, rubrics=rubrics, store=store)
    whole = out.read_bytes()
    lengths = [len(line) for line in whole.splitlines(keepends=True)]
    ends = [sum(lengths[:i]) for i in range(len(lengths) + 1)]
    for size in (0, 1, 12, ends[1], ends[4] - 1, ends[4] + 30, ends[5] + 200, ends[-1] - 1):
        out.write_bytes(whole[:size])
        run(server, out, rubrics=rubrics, store=store)
        assert out.read_bytes() == whole, size
    # without a store the same, but for the seconds; and only what was missing is asked
    asked = sum(server.asked.values())
    out.write_bytes(whole[: ends[5] + 30])
    run(server, out, rubrics=rubrics)
    assert timeless(out.read_bytes()) == timeless(whole)
    missing = [line for line in timeless(whole)[5:] if line.get("method") == "answer_token"]
    assert sum(server.asked.values()) == asked + len(missing)


def test_more_rows_by_and_by(server, out):
    for limit in (2, 5, 5, None):
        run(server, out, limit=limit)
    assert [line["id"] for line in timeless(out.read_bytes())] == [row["id"] for row in ROWS]
    assert sum(server.asked.values()) == 7


def test_failures_are_asked_again_and_stand_in_their_place(out):
    bad = {1, 4}
    with FaultServer(
        script=lambda content, before: "filtered" if before == 0 and any(f"answer {i}" in content for i in bad) else None
    ) as server:
        run(server, out, limit=6)
        first = timeless(out.read_bytes())
        assert [i for i, line in enumerate(first) if line["status"] == "filtered"] == [1, 4]
        told = []
        [summary] = run(server, out, told=told)
        assert told == [f"going on with {out}: 4 graded rows are kept, 2 failed ones are asked again"]
        lines = timeless(out.read_bytes())
    assert [line["id"] for line in lines] == [row["id"] for row in ROWS]
    assert all(line["status"] == "graded" for line in lines)
    assert [lines[i] for i in (0, 2, 3, 5)] == [first[i] for i in (0, 2, 3, 5)]
    assert (summary.n, summary.n_failed) == (8, 0)
    assert [each.name for each in out.parent.iterdir()] == [out.name]


def test_what_was_asked_again_before_the_server_went_away_is_kept(out):
    dead = []

    def script(content, before):
        if dead and "answer 4" in content:
            return "key"
        return "filtered" if before == 0 and ("answer 1" in content or "answer 4" in content) else None

    with FaultServer(script=script) as server:
        run(server, out)
        dead.append(True)
        with pytest.raises(ServerError, match="key"):
            run(server, out, concurrency=1)
        statuses = [line["status"] for line in timeless(out.read_bytes())]
        assert statuses == ["graded"] * 4 + ["filtered"] + ["graded"] * 3
        dead.clear()
        run(server, out)
        assert {line["status"] for line in timeless(out.read_bytes())} == {"graded"}


def changed(i, **fields):
    return [{**row, **(fields if j == i else {})} for j, row in enumerate(ROWS)]


RUBRIC = (
    "name: answer_correctness\ndescription: d\nfields: {output: answer}\ninstructions: other words\nitem: '{output}'\n"
    "blank_output: level_0\nlevels: [{label: 0, description: a}, {label: 1, description: b}, {label: 2, description: c}, "
    "{label: 3, description: d}, {label: 4, description: e}]\n"
)


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        (ROWS, {"model": "n"}, r"line 1 \(id 'r0'\): another model: m then, n now"),
        (ROWS, {"rubrics": ("relevance",)}, "is by rubric answer_correctness, this command's is relevance"),
        (
            ROWS,
            {"rubrics": ("answer_correctness", "relevance")},
            "line 2 .*is by rubric answer_correctness, this command's is relevance",
        ),
        (ROWS, {"rubrics": ("other.yaml",)}, "another rubric"),
        (ROWS, {"method": "sampling"}, "another method: answer_token then, sampling now"),
        (ROWS, {"max_tokens": 9}, "a parameter"),
        (ROWS, {"prefill": True}, "a parameter"),
        (changed(5, output="another answer"), {}, r"line 6 \(id 'r5'\): a text of this row has changed since"),
        (changed(3, output="no longer blank"), {}, r"line 4 \(id 'r3'\): a text of this row"),
        (changed(2, gold=4), {}, r"line 3 \(id 'r2'\): its gold has changed"),
        (changed(2, tag=["x"]), {}, "its metadata has changed"),
        (changed(2, group="other"), {}, "its group has changed"),
        (changed(2, id="other"), {}, "this command's row there has id 'other'"),
        (ROWS[::-1], {}, "line 1 .*this command's row there has id 'r7'"),
        (ROWS[:6], {}, "it holds 8 lines, and this command writes 6"),
        (ROWS, {"limit": 3}, "it holds 8 lines, and this command writes 3"),
    ],
)
def test_another_runs_file_is_refused_and_the_difference_named(server, out, rows, options, said):
    out.with_name("other.yaml").write_text(RUBRIC, encoding="utf-8")
    if options.get("rubrics") == ("other.yaml",):
        options = {"rubrics": (out.with_name("other.yaml"),)}
    run(server, out)
    before, asked = out.read_bytes(), sum(server.asked.values())
    with pytest.raises(UserError, match=said) as caught:
        run(server, out, rows, **options)
    assert str(out) in str(caught.value)
    assert "--force" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert out.read_bytes() == before
    assert sum(server.asked.values()) == asked


def test_a_higher_min_mass_is_refused_where_it_would_have_told(server, out):
    run(server, out)
    run(server, out, min_mass=0.6)  # all lines have more
    lines = out.read_text(encoding="utf-8").splitlines(keepends=True)
    lines[1] = json.dumps({**json.loads(lines[1]), "observed_mass": 0.55}) + "\n"
    out.write_text("".join(lines), encoding="utf-8")
    run(server, out)
    with pytest.raises(UserError, match=r"line 2 .*observed mass, 0.550, is under --min-mass 0.6, which was lower then"):
        run(server, out, min_mass=0.6)


def test_another_server_is_refused(server, out):
    run(server, out)
    with FaultServer() as other, pytest.raises(UserError, match="another server: http"):
        run(other, out)


@pytest.mark.parametrize(
    "content",
    [
        b"precious",
        b"precious\n",
        b'{"id": "a", "input": "q"}\n',
        b'{"id": "r0", "input": "somebody\'s data, one line, no line end"}',
        b'{"id": "r0", "index": 1',
        b"[1]\n",
        b"\n",
        b"\xff\xfe",
    ],
)
def test_a_file_that_is_none_of_ours_is_left(server, out, content):
    out.write_bytes(content)
    with pytest.raises(UserError, match="--force"):
        run(server, out)
    assert out.read_bytes() == content
    assert not server.asked


def test_a_foreign_tail_is_no_half_line(server, out):
    run(server, out, limit=2)
    with out.open("ab") as file:
        file.write(b'{"id": "mine", "note": "do not lose me"')
    before = out.read_bytes()
    with pytest.raises(UserError, match="no begin of the next one"):
        run(server, out)
    assert out.read_bytes() == before


def test_a_csv_cannot_be_gone_on_with(tmp_path):
    (tmp_path / "grades.csv").write_text("id\n", encoding="utf-8")
    with pytest.raises(UserError, match="a CSV cannot be gone on with; --force"):
        begun(tmp_path / "grades.csv")


def test_nothing_to_go_on_with(tmp_path):
    assert begun(tmp_path / "none.jsonl") is None
    (tmp_path / "empty.jsonl").touch()
    assert begun(tmp_path / "empty.jsonl") is None
    assert begun(os.devnull) is None


def test_stopping_gently_leaves_a_begin_of_the_whole(server, out, tmp_path):
    run(server, out)
    whole = timeless(out.read_bytes())
    out.unlink()
    seen = []
    judge = Judge(model="m", base_url=server.base_url, concurrency=2)
    with judge, ResultWriter(out, {judge.rubric.name: judge.rubric.labels}) as writer:
        rows = read_rows(ROWS)
        [summary] = score(
            rows, [judge], writer=writer, on_grade=lambda row, _: seen.append(row.index), stopped=lambda: len(seen) >= 3
        )
    lines = timeless(out.read_bytes())
    assert 3 <= len(lines) < 8
    assert lines == whole[: len(lines)]
    assert summary.n == len(lines) == len(seen)
    run(server, out)
    assert timeless(out.read_bytes()) == whole


def test_lines_of_another_calibration_are_refused(server, out, tmp_path):
    from isograde.runs.calibrate import fitted, graded_by

    rows = list(read_rows([{**ROWS[0], "id": f"g{i}", "output": f"other {i}", "gold": i % 5} for i in range(40)]))
    with Judge(model="m", base_url=server.base_url) as judge:
        found = graded_by(judge, rows, on_grade=lambda *_: None)
        assert not any(isinstance(grade, GradeFailure) for grade in found.grades)
    for name, part in (("one", slice(0, 20)), ("two", slice(20, 40))):
        half = type(found)(rows=found.rows[part], grades=found.grades[part], scores=None, n_levels=5)
        (tmp_path / f"{name}.json").write_text(fitted(half, label_source=None).to_json(), encoding="utf-8")
    run(server, out, calibrator=tmp_path / "one.json")
    before = out.read_bytes()
    run(server, out, calibrator=tmp_path / "one.json")
    for other, said in ((tmp_path / "two.json", "another calibration"), (None, "was written with --calibration")):
        with pytest.raises(UserError, match=said):
            run(server, out, calibrator=other)
    assert out.read_bytes() == before
