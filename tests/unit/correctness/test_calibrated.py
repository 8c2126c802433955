"""A calibrator of several signals at work on results."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from browser.reports import grade, one_hot
from isograde import Judge
from isograde.applied import judge_of
from isograde.calibration import JudgeFingerprint, SignalCalibrator
from isograde.correctness import AnswerCorrectness, Correctness
from isograde.correctness.calibrated import SignalCalibration, holds_signals, settings_of
from isograde.correctness.counts import Counts
from isograde.datasets import Row
from isograde.errors import CalibrationError
from isograde.records import Item
from isograde.rubric import load_rubric
from isograde.runs.correctness_lines import CorrectnessLine, correctness_line
from isograde.runs.correctness_summary import CorrectnessTally
from servers.scripted import FixedEmbeddings, ScriptedModel
from servers.stub import StubServer

RUBRIC = load_rubric("answer_correctness")
COUNTS = Counts(tp_response=1, fp=0, tp_reference=1, fn=0)
LEVELS = [i / 4 for i in range(5)] * 8
GOLD = [0, 1, 2, 3, 4] * 8


class Metric:
    """What SignalCalibration asks of AnswerCorrectness."""

    def __init__(self, *, embeddings=None, beta=1.0):
        self.verdicts, self.recall_over, self.beta, self.embeddings = "logprobs", "reference", beta, embeddings


def fitted(*names, judge=None, settings=None):
    judge = judge or judge_of(grade([1.0, 0.0, 0.0, 0.0, 0.0]))
    settings = settings_of(Metric(), names) if settings is None else settings
    return SignalCalibrator(judge=judge, settings=settings).fit(dict.fromkeys(names, LEVELS), GOLD)


def result(**parts):
    return Correctness(value=None, counts=COUNTS, **parts)


def test_calibrated_values_are_the_calibrators():
    calibrator = fitted("rubric", "claim_f1")
    applied = SignalCalibration(calibrator, RUBRIC, Metric()).applied(result(rubric=grade([0, 0.5, 0.5, 0, 0]), f_beta=0.75))
    signals = {"rubric": [0.375], "claim_f1": [0.75]}
    found = applied.calibrated
    assert found.level == calibrator.predict(signals)[0]
    assert found.score == pytest.approx(calibrator.predict_mean(signals)[0] / 4)
    assert list(found.probabilities.values()) == pytest.approx(calibrator.predict_proba(signals)[0])
    assert found.p_pass == pytest.approx(calibrator.predict_at_least(signals, 3)[0])
    # Intervals that do not know of the fitted weights would cover too little.
    assert found.interval is None


def test_results_without_a_signal_stay_as_they_are():
    calibration = SignalCalibration(fitted("rubric", "claim_f1"), RUBRIC, Metric())
    for lacking in (result(rubric=one_hot(3)), result(f_beta=0.5)):
        assert calibration.applied(lacking) is lacking
    assert calibration.needs_rubric
    assert not SignalCalibration(fitted("precision", "recall"), RUBRIC, Metric()).needs_rubric
    blank = calibration.applied(result(rubric=one_hot(0, method="blank_output")))
    assert (blank.calibrated.level, blank.calibrated.score, blank.calibrated.p_pass) == (0, 0, 0)
    alike = SignalCalibration(fitted("precision", "recall"), RUBRIC, Metric()).applied(result(identical=True))
    assert alike.calibrated.level == 4


@pytest.mark.parametrize(
    ("calibrator", "metric", "said"),
    [
        (fitted("rubric", "ragas"), Metric(), "needs the signal ragas, and this run makes rubric, claim_f1, precision, recall, similarity"),
        (fitted("rubric", "similarity"), Metric(), "needs the signal similarity, and this run has no embeddings"),
        (
            fitted("claim_f1", "recall", settings={"verdicts": "logprobs", "recall_over": "reference", "beta": "2"}),
            Metric(),
            "made otherwise .beta: '2' and '1'",
        ),
        (
            fitted("rubric", "similarity", settings={"embeddings": "other"}),
            Metric(embeddings=FixedEmbeddings(0.5)),
            "embeddings: 'other' and 'fixed'",
        ),
    ],
)  # fmt: skip
def test_a_run_that_lacks_a_signal_is_refused(calibrator, metric, said):
    with pytest.raises(CalibrationError, match=said):
        SignalCalibration(calibrator, RUBRIC, metric)


def test_another_judge_is_refused():
    calibration = SignalCalibration(fitted("rubric", "claim_f1", judge=JudgeFingerprint(model="other")), RUBRIC, Metric())
    with pytest.raises(CalibrationError, match="model: 'other' and 'a-judge'"):
        calibration.applied(result(rubric=one_hot(3), f_beta=0.5))


def test_settings_of_signals_that_are_not_needed_do_not_matter():
    calibrator = SignalCalibrator(judge=judge_of(one_hot(0)), settings={"embeddings": "e"})
    calibrator.fit({"rubric": LEVELS, "similarity": [0.5] * 40}, GOLD)
    assert calibrator.names == ("rubric",)
    applied = SignalCalibration(calibrator, RUBRIC, Metric()).applied(result(rubric=one_hot(4)))
    assert applied.calibrated.level == 4


def test_settings_are_those_of_the_signals_that_are_named():
    metric = Metric(embeddings=FixedEmbeddings(0.5))
    claims = {"verdicts": "logprobs", "recall_over": "reference", "beta": "1"}
    assert settings_of(metric, ("rubric", "claim_f1")) == claims
    assert settings_of(metric, ("rubric", "similarity")) == {"embeddings": "fixed"}
    assert settings_of(metric, ("recall", "similarity")) == claims | {"embeddings": "fixed"}


def test_files(tmp_path):
    path = tmp_path / "c.json"
    path.write_text(fitted("rubric", "claim_f1").to_json(), encoding="utf-8")
    assert holds_signals(path)
    assert SignalCalibration(path, RUBRIC, Metric()).applied(result(rubric=one_hot(4), f_beta=1.0)).calibrated.level == 4
    for text in ("{}", "[]", "{", '{"kind": "isograde.calibrator"}'):
        path.write_text(text, encoding="utf-8")
        assert not holds_signals(path)
        with pytest.raises(CalibrationError, match="c.json: this is no isograde calibrator of signals"):
            SignalCalibration(path, RUBRIC, Metric())
    assert not holds_signals(tmp_path / "none.json")
    with pytest.raises(CalibrationError, match="none.json: No such file"):
        SignalCalibration(tmp_path / "none.json", RUBRIC, Metric())
    with pytest.raises(CalibrationError, match="choice without order"):
        SignalCalibration(fitted("rubric", "claim_f1"), load_rubric("factuality"), Metric())


def test_end_to_end():
    item = {"user_input": "Who?", "response": "Ada. Bob.", "reference": "Ada."}
    with StubServer(ScriptedModel({"Ada. Bob.": ["Ada.", "Bob."]}, ["Ada."])) as server:

        def metric(**options):
            judge = Judge(model="stub-1", base_url=server.base_url, max_retries=0)
            return AnswerCorrectness(judge, FixedEmbeddings(0.72), **options)

        raw = metric().score(**item)
        names = ("rubric", "claim_f1", "similarity")
        calibrator = fitted(*names, judge=judge_of(raw.rubric), settings=settings_of(metric(), names))
        found = metric(calibrator=calibrator).score(**item)
        assert replace(found, calibrated=None, seconds_by_part={}, rubric=None) == replace(raw, seconds_by_part={}, rubric=None)
        signals = {"rubric": [raw.rubric.score], "claim_f1": [raw.f_beta], "similarity": [0.72]}
        assert found.calibrated.score == pytest.approx(calibrator.predict_mean(signals)[0] / 4)
        # An answer that equals its reference is asked nothing, but for the rubric where that is a signal.
        n_requests = len(server.requests)
        [alike] = metric(calibrator=calibrator).score_batch([item | {"response": "Ada"}])
        assert alike.identical
        assert alike.calibrated is not None
        assert len(server.requests) == n_requests + 1
        with pytest.raises(CalibrationError, match="beta: '1' and '2'"):
            metric(calibrator=calibrator, beta=2.0)


def test_the_line_of_a_result_holds_it():
    found = SignalCalibration(fitted("rubric", "claim_f1"), RUBRIC, Metric()).applied(result(rubric=one_hot(4), f_beta=1.0))
    row = Row(item=Item(id="a"), index=0, gold=4.0)
    line = CorrectnessLine.model_validate_json(correctness_line(row, found).model_dump_json())
    assert line.calibrated.level == 4
    assert json.loads(correctness_line(row, result(f_beta=1.0)).model_dump_json())["calibrated"] is None
    tally = CorrectnessTally()
    tally.add(row, found)
    tally.add(row, result(f_beta=1.0))
    assert tally.summary(1.0).means["calibrated"] == (pytest.approx(found.calibrated.score), 1)
