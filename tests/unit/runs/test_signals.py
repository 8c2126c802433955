"""Labelled rows into signals with their cost, and a calibrator of them."""

from __future__ import annotations

import pytest

from browser.reports import one_hot
from isograde.calibration import JudgeFingerprint, SignalCalibrator
from isograde.correctness.counts import Counts
from isograde.correctness.results import Correctness, CorrectnessFailure
from isograde.datasets import Row
from isograde.errors import CalibrationError, DataError, UserError
from isograde.records import GradeFailure, Item, Usage
from isograde.report import Cost
from isograde.runs.calibrate import Labelled, fitted, reported
from isograde.runs.signals import fitted_mae, measured, needs_metric, signal_names, signals_of

COUNTS = Counts(tp_response=1, fp=0, tp_reference=1, fn=0)


def rows_of(n, **columns):
    return [
        Row(
            item=Item(id=str(i), group=f"g{i // 2}", metadata={name: column[i] for name, column in columns.items()}),
            gold=float(i % 5),
            index=i,
        )
        for i in range(n)
    ]


def usage(tokens):
    return Usage(input_tokens=tokens, output_tokens=10)


def correctness(**parts):
    return Correctness(value=parts.get("f_beta"), counts=COUNTS, **parts)


class Judge:
    """Grades what the metric left ungraded."""

    async def grade(self, item, *, index=None):
        return one_hot(4, item, index=index)


class Metric:
    """Gives the results that it was made with, as AnswerCorrectness does."""

    verdicts, recall_over, beta = "logprobs", "reference", 1.0
    judge = Judge()

    class embeddings:  # noqa: N801 - an attribute with a name
        name = "small-1"

    def __init__(self, results):
        self._results = results

    async def results(self, rows, *, ordered, stopped):
        assert ordered
        for row, result in zip(rows, self._results, strict=True):
            yield row, result


def test_names():
    assert signal_names(" rubric ,claim_f1,, ragas ") == ("rubric", "claim_f1", "ragas")
    with pytest.raises(UserError, match="'a' stands twice"):
        signal_names("a,b,a")
    with pytest.raises(UserError, match="name two signals or more, of rubric, claim_f1"):
        signal_names("rubric,")
    assert needs_metric(("rubric", "recall"))
    assert not needs_metric(("rubric", "ragas"))


def test_grades_and_results_row_by_row():
    rows = rows_of(4)
    failure = CorrectnessFailure(status="timeout", message="late", part="claims", rubric=one_hot(1))
    broken = GradeFailure(status="low_mass", message="little")
    told = []
    grades, results = measured(
        Metric(
            [
                correctness(f_beta=0.5, rubric=one_hot(3)),
                correctness(f_beta=1.0, identical=True),
                failure,
                correctness(rubric=broken),
            ]
        ),
        rows,
        on_grade=lambda row, grade: told.append((row.index, grade)),
    )
    # The second equals its reference, so the metric asked nothing: the rubric is asked all the same.
    assert [getattr(grade, "level", None) for grade in grades] == [3, 4, 1, None]
    assert told == list(enumerate(grades))
    signals = signals_of(rows, ("rubric", "claim_f1", "precision"), grades=grades, results=results)
    assert signals.values == {
        "rubric": (0.75, 1.0, 0.25, None),
        "claim_f1": (0.5, 1.0, None, None),
        "precision": (None, 1.0, None, None),
    }


def test_costs_by_hand():
    rows = rows_of(3)
    results = [
        correctness(
            f_beta=0.5,
            similarity=0.5,
            usage_by_part={"claims": usage(90), "verdicts": usage(190), "rubric": usage(50)},
            seconds_by_part={"claims": 1.0, "verdicts": 2.0, "rubric": 0.5, "similarity": 0.3},
        ),
        # Decided by a rule: nothing was asked but the rubric, by the judge itself.
        correctness(f_beta=0.0, similarity=0.0),
        # Blank, and graded by rule: no row that counts.
        correctness(f_beta=0.0, similarity=0.0),
    ]
    grades = [one_hot(2), one_hot(0, usage=usage(110), latency_s=0.25), one_hot(0, method="blank_output")]
    names = ("rubric", "claim_f1", "similarity")
    signals = signals_of(rows, names, grades=grades, results=results)
    # Two rows count: (90 + 10) ÷ 2, (190 + 10) ÷ 2, (50 + 10 + 110 + 10) ÷ 2 tokens.
    assert signals.costs == {
        "rubric": {"rubric": Cost(tokens=90, seconds=0.375)},
        "claim_f1": {"claims": Cost(tokens=50, seconds=0.5), "verdicts": Cost(tokens=100, seconds=1.0)},
        # The embeddings counted no tokens, so how many there were is not known.
        "similarity": {"similarity": Cost(tokens=None, seconds=0.15)},
    }
    assert signals.by_rule == (False, False, True)


def test_sentences_cost_no_tokens():
    results = [correctness(f_beta=0.5, seconds_by_part={"claims": 0.01, "verdicts": 1.0}, usage_by_part={"verdicts": usage(90)})]
    signals = signals_of(rows_of(1), ("claim_f1", "recall"), grades=[one_hot(0)], results=results)
    assert signals.costs["claim_f1"]["claims"] == Cost(tokens=0, seconds=0.01)


def test_columns():
    rows = rows_of(5, ragas=[0, "0.5", None, float("nan"), ""], text=["x"] * 5, big=[1.5] * 5, flag=[True] * 5)
    assert signals_of(rows, ("ragas",), grades=None, results=None).values["ragas"] == (0.0, 0.5, None, None, None)
    for name, said in [
        ("text", r"row 1 \(id '0'\), column 'text': holds 'x'; a signal is a number in 0 … 1"),
        ("big", "holds 1.5"),
        ("flag", "holds True"),
        (
            "nope",
            "'nope' is neither one of rubric, claim_f1, precision, recall, similarity nor a column of row 1; columns found: ragas",
        ),
    ]:
        with pytest.raises(DataError, match=said):
            signals_of(rows, (name,), grades=None, results=None)


def labelled(n=40, *, grades=None, gap=None, **columns):
    rows = rows_of(n, **columns)
    names = (*(["rubric"] if grades else []), *columns)
    signals = signals_of(rows, names, grades=grades, results=None, settings={"beta": "1"})
    scores = None if grades else signals.values[names[0]]
    return Labelled(
        rows=tuple(rows),
        grades=None if grades is None else tuple(grades),
        scores=scores,
        n_levels=5,
        score_range=None if grades else (0, 1),
        signals=signals,
    )


def test_a_calibrator_of_rubric_and_column():
    grades = [one_hot(i % 5) for i in range(38)] + [
        one_hot(0, method="blank_output"),
        GradeFailure(status="timeout", message="late"),
    ]
    found = labelled(grades=grades, other=[None, *((i % 5) / 4 for i in range(1, 40))])
    calibrator = fitted(found, label_source="me")
    assert isinstance(calibrator, SignalCalibrator)
    # Forty rows without the one that lacks the column, the blank one and the one that failed.
    assert calibrator.provenance_.n == 37
    assert calibrator.provenance_.label_source == "me"
    assert calibrator.provenance_.judge == JudgeFingerprint(
        model="a-judge", rubric="a" * 16, prompt="b" * 16, labels=tuple("01234"), method="answer_token"
    )
    calibrator.check_settings({"beta": "1"})
    assert calibrator.predict({"rubric": [0.0, 1.0], "other": [0.0, 1.0]}).tolist() == [0, 4]
    report = reported(found, label_source="me", title="t")
    assert [row.name for row in report.signal_table.rows] == ["rubric", "other", "index"]
    assert (report.signal_table.n, report.signal_table.n_left_out) == (37, 2)
    assert report.n_failed == 1
    assert fitted_mae(report) == report.signal_table.rows[-1].mae.value


def test_columns_alone():
    found = labelled(first=[(i % 5) / 4 for i in range(40)], second=[None if i == 3 else 0.5 for i in range(40)])
    report = reported(found, label_source=None, title="t")
    # The report's judge is the first column.
    assert report.point_figures[0].calibrated.value == 0
    assert report.signal_table.n == 39
    assert fitted(found, label_source=None).provenance_.judge is None


def test_nothing_to_fit():
    with pytest.raises(CalibrationError, match=r"no labelled row has all signals \(a, b\)"):
        fitted(labelled(2, a=[None, 0.5], b=[0.5, None]), label_source=None)
