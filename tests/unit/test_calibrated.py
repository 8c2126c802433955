"""A calibrator beside the judge: applied when asked, to its own judge only."""

import json

import numpy as np
import pytest

from isograde import Item, Judge
from isograde.calibration import Calibrator
from isograde.correctness import Correctness, Counts
from isograde.datasets import Row, read_rows
from isograde.errors import CalibrationError, DataError
from isograde.runs.calibrate import fitted, graded_by, read_grades, with_grades, with_scores
from isograde.runs.correctness_lines import CorrectnessWriter
from isograde.runs.results import ResultWriter
from isograde.runs.score import score
from servers.stub import StubServer, completion


def by_level(request):
    """A judge that says everything one level too high, and is sure of it."""
    level = int(request["messages"][1]["content"].split("<answer>\nlevel ")[1][0])
    said = str(min(4, level + 1))
    return completion({said: 0.96, **{other: 0.01 for other in "01234" if other != said}})


@pytest.fixture
def server():
    with StubServer(by_level) as running:
        yield running


@pytest.fixture
def rows():
    items = [
        {"id": str(i), "input": "q", "output": f"level {i % 4}", "expected": "e", "gold": i % 4, "group": f"g{i // 4}"}
        for i in range(80)
    ]
    return read_rows(items, gold_scale=(0, 4))


@pytest.fixture
def judge(server):
    with Judge(model="m", base_url=server.base_url, max_retries=0) as mine:
        yield mine


def test_a_grade_carries_the_calibrated_values_beside_the_raw(judge, rows, server):
    labelled = graded_by(judge, list(rows), on_grade=lambda *_: None)
    calibrator = fitted(labelled, label_source="test")
    with Judge(model="m", base_url=server.base_url, calibrator=calibrator) as calibrated:
        grade = calibrated.score(input="q", output="level 2", expected="e")
        assert grade.level == 3  # raw, one too high
        assert grade.calibrated.level == 2  # what the labels say of it
        assert grade.calibrated.score == pytest.approx(0.5, abs=0.05)
        assert sum(grade.calibrated.probabilities.values()) == pytest.approx(1)
        top = calibrated.score(input="q", output="level 3", expected="e")
        assert top.calibrated.level == 3
        assert top.calibrated.p_pass > 0.8
        assert grade.calibrated.p_pass < 0.2
        # the same figures as the calibrator gives by itself
        given = np.array([grade.distribution.probabilities])
        assert grade.calibrated.level == calibrator.predict(given)[0]
        assert grade.calibrated.score == pytest.approx(calibrator.predict_mean(given)[0] / 4)
        assert list(grade.calibrated.probabilities.values()) == pytest.approx(calibrator.predict_proba(given)[0])
        blank = calibrated.score(input="q", output="", expected="e")
        assert (blank.method, blank.calibrated.score) == ("blank_output", 0)
    assert judge.score(input="q", output="level 2", expected="e").calibrated is None  # never unasked


@pytest.mark.parametrize(
    ("other", "said"),
    [({"model": "n"}, "model: 'm' and 'n'"), ({"prefill": True}, "prompt: "), ({"rubric": "relevance"}, "rubric: ")],
)
def test_another_judge_is_refused_with_the_difference(judge, rows, server, other, said):
    calibrator = fitted(graded_by(judge, list(rows), on_grade=lambda *_: None), label_source=None)
    with Judge(**{"model": "m", **other}, base_url=server.base_url, calibrator=calibrator) as stranger:
        with pytest.raises(CalibrationError, match=said):
            stranger.score(input="q", output="level 2", expected="e")


def test_files_that_are_no_calibrator(tmp_path):
    path = tmp_path / "c.json"
    for content in ("", "{}", "[1]", "not json"):
        path.write_text(content, encoding="utf-8")
        with pytest.raises(CalibrationError, match="c.json"):
            Judge(model="m", base_url="http://x/v1", calibrator=path)
    with pytest.raises(CalibrationError, match="No such file"):
        Judge(model="m", base_url="http://x/v1", calibrator=tmp_path / "none.json")
    with pytest.raises(CalibrationError, match="choice without order"):
        Judge(model="m", base_url="http://x/v1", rubric="factuality", calibrator=Calibrator())


def test_grades_written_and_read_back_fit_the_same_calibrator(judge, rows, tmp_path):
    path = tmp_path / "grades.jsonl"
    with ResultWriter(path, {"answer_correctness": judge.rubric.labels}) as writer:
        score(rows, [judge], writer=writer)
    live = graded_by(judge, list(rows), on_grade=lambda *_: None)
    joined = with_grades(list(rows), path)
    for one, other in zip(live.grades, joined.grades, strict=True):
        assert other.distribution.expected_level_bounds == pytest.approx(one.distribution.expected_level_bounds)
        assert other.distribution.unseen_mass == pytest.approx(one.distribution.unseen_mass, abs=1e-12)
    assert fitted(joined, label_source="x").to_json() == fitted(live, label_source="x").to_json()


def test_a_calibrated_run_sums_up_its_calibrated_values(judge, rows, server, tmp_path):
    calibrator = fitted(graded_by(judge, list(rows), on_grade=lambda *_: None), label_source=None)
    path = tmp_path / "c.json"
    path.write_text(calibrator.to_json(), encoding="utf-8")
    with Judge(model="m", base_url=server.base_url, calibrator=path) as calibrated:
        out = tmp_path / "grades.jsonl"
        with ResultWriter(out, {"answer_correctness": judge.rubric.labels}) as writer:
            [summary] = score(rows, [calibrated], writer=writer)
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert summary.calibrated
    assert summary.mean_score == pytest.approx(np.mean([line["calibrated"]["score"] for line in lines]))
    assert summary.pass_rate == pytest.approx(np.mean([line["calibrated"]["p_pass"] for line in lines]))
    assert summary.mean_score < np.mean([line["score"] for line in lines])
    assert read_grades(out)["0", "answer_correctness"].calibrated.level == 0


def test_plain_scores_of_another_judge():
    rows = list(read_rows([{"id": str(i), "output": "a", "gold": i % 5, "ragas": i % 5 / 4} for i in range(50)]))
    labelled = with_scores(rows, "ragas", n_levels=5, score_range=(0, 1))
    assert fitted(labelled, label_source=None).predict([0.25, 0.75]).tolist() == [1, 3]


@pytest.mark.parametrize(
    ("value", "said"),
    [(None, "holds None"), ("high", "holds 'high'"), (float("nan"), "a score is a finite number"), (True, "holds True")],
)
def test_scores_that_are_none_are_named(value, said):
    rows = [
        Row(item=next(iter(read_rows([{"id": "x", "output": "a", "s": value}]))).item, gold=1.0, raters=(1.0,), index=4, line=7)
    ]
    with pytest.raises(Exception, match=f"line 7 .id 'x'., column 's': .*{said}"):
        with_scores(rows, "s", n_levels=5)


def test_what_a_file_of_grades_lacks(judge, rows, tmp_path):
    path = tmp_path / "grades.jsonl"
    with ResultWriter(path, {}) as writer:
        score(rows, [judge], writer=writer, limit=3)
    with pytest.raises(Exception, match="row 4 .id '3'. has a gold label but no grade by answer_correctness"):
        with_grades(list(rows), path)
    path.write_text(path.read_text(encoding="utf-8") + "{broken\n", encoding="utf-8")
    with pytest.raises(Exception, match="line 4: is no grade that isograde score wrote .not JSON."):
        read_grades(path)
    path.write_text('{"status": "graded"}\n', encoding="utf-8")
    with pytest.raises(Exception, match="line 1: .*id: Field required"):
        read_grades(path)


def test_a_row_that_is_graded_twice_is_named(judge, rows, tmp_path):
    path = tmp_path / "grades.jsonl"
    with ResultWriter(path, {}) as writer:
        score(rows, [judge], writer=writer, limit=3)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    path.write_text("".join([*lines, lines[1]]), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        read_grades(path)
    assert str(caught.value) == f"{path}, lines 2 and 4: id '1' is graded twice by answer_correctness; take out one of the two"


def test_results_of_another_metric_are_called_so(tmp_path):
    path = tmp_path / "claims.jsonl"
    row = Row(item=Item(id="a"), index=0)
    counts = Counts(tp_response=0, fp=0, tp_reference=0, fn=0)
    with CorrectnessWriter(path) as writer:
        writer.write(row, Correctness(value=1.0, f_beta=1.0, counts=counts, rule="identical"))
    with pytest.raises(DataError) as caught:
        read_grades(path)
    assert str(caught.value) == f"{path}, line 1: holds claim_f1 results; this command takes grades by a rubric"


@pytest.mark.parametrize(
    ("column", "said"),
    [
        ("gold", "is read as gold, and a judge's scores stand in a column of their own"),
        ("answer", "is read as output, and a judge's scores stand in a column of their own"),
        ("label", "is missing, or is read as gold or another field; columns left: other"),
    ],
)
def test_a_column_that_is_read_as_something_else(column, said):
    rows = list(read_rows([{"answer": "a", "gold": 3, "other": 1}]))
    with pytest.raises(DataError) as caught:
        with_scores(rows, column, n_levels=5)
    assert str(caught.value) == f"row 1 (id '0'), column '{column}': {said}; a score is a finite number"
