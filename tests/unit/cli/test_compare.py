"""isograde compare and isograde estimate, from graded lines to exit codes."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from isograde.cli.main import cli
from isograde.errors import UserError
from isograde.runs.compare import compare_runs
from statistical.simulated import simulate_pair

TOP = 4


def graded(i, probabilities, gold, **changed):
    """A line as isograde score writes it."""
    levels = [round(float(p), 6) for p in probabilities]
    levels[-1] += 1 - sum(levels)
    expected = sum(k * p for k, p in enumerate(levels))
    return {
        "id": f"q{i}", "index": i, "group": None, "rubric": "answer_correctness", "status": "graded", "score": expected / TOP,
        "label": f"{expected:.1f} / 4", "level": int(np.argmax(levels)), "passed": expected >= 3, "confidence": 0.5,
        "probabilities": dict(zip("01234", levels, strict=True)), "expected_level": expected,
        "expected_level_bounds": [expected, expected], "observed_mass": 1.0, "missing_levels": [], "prefix_probability": None,
        "reference_index": None, "calibrated": None, "caveat": None, "gold": gold, "raters": [] if gold is None else [gold],
        "model": "m", "adapter": None, "method": "answer_token", "rubric_fingerprint": "r", "prompt_fingerprint": "p",
        "server": None, "input_tokens": 1, "output_tokens": 1, "cached_tokens": None, "latency_s": None,
        "metadata": {"language": "de 🦊" if i % 2 else "en", "topic": "abc"[i % 3]}, **changed,
    }  # fmt: skip


def failed(line):
    """The same row, not graded."""
    kept = ("id", "index", "group", "rubric", "gold", "raters", "metadata")
    return {name: line[name] for name in kept} | {"status": "timeout", "message": "no answer"}


def write(path, lines):
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")


@pytest.fixture
def folder(tmp_path):
    """300 pairs; B is better; the first 60 have gold in a file of its own; three rows are lost."""
    pair = simulate_pair("biased", 300, np.random.default_rng(1), shift=0.6)
    lines = [[graded(i, each.probabilities[i], None) for i in range(300)] for each in pair]
    lines[1][200] = failed(lines[1][200])
    write(tmp_path / "a.jsonl", lines[0])
    write(tmp_path / "b.jsonl", lines[1][:298])
    write(tmp_path / "gold.jsonl", [{"id": f"q{i}", "gold_a": pair[0].gold[i], "gold_b": pair[1].gold[i]} for i in range(60)])
    write(tmp_path / "gold_b.jsonl", [{"id": f"q{i}", "gold": pair[1].gold[i]} for i in range(60)])
    sheet = ["id,inclusion_probability,rater_1,rater_2", *(f"q{i},0.2,{pair[0].gold[i]:g}," for i in range(60))]
    (tmp_path / "sheet.csv").write_text("\n".join(sheet) + "\n", encoding="utf-8")
    return tmp_path


def test_gold_on_both_sides(isograde, folder):
    done = isograde("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--require-non-inferior", "0.02", "--report", "r.html",
                    "--fail-if-worse-by", "0.02", cwd=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("B is better than A")
    assert "297, of them 60 with gold labels on both sides" in done.stdout
    assert "3 rows (1.0 %) are in no pair" in done.stdout
    assert "language: de 🦊" in done.stdout
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "Is B better than A? a (A) and b (B)" in page
    assert "q1" in page


def test_gates_stop_a_worse_system(isograde, folder):
    # the other way round: what was better is worse
    write(folder / "turned.jsonl", [
        {"id": row["id"], "gold_a": row["gold_b"], "gold_b": row["gold_a"]}
        for row in map(json.loads, (folder / "gold.jsonl").read_text(encoding="utf-8").splitlines())
    ])  # fmt: skip
    for gate in ("--fail-if-worse-by", "--require-non-inferior"):
        done = isograde("compare", "b.jsonl", "a.jsonl", "--gold", "turned.jsonl", gate, "0.01", cwd=folder)
        assert done.returncode == 1
        assert gate in done.stderr
    assert done.stdout.startswith("B is worse than A")


def test_without_gold_on_both_sides_it_says_so_and_no_gate_takes_it(isograde, folder):
    done = isograde("compare", "a.jsonl", "b.jsonl", "--gold-b", "gold_b.jsonl", "--fail-if-worse-by", "0.02", cwd=folder)
    assert done.returncode == 2
    assert done.stdout.startswith("Judge difference, not debiased")
    assert "60 on B's" in done.stdout
    assert "no gold labels on both sides" in done.stderr


def test_json_for_machines(isograde, folder):
    done = isograde("compare", "a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--by", "topic", "--json", cwd=folder)
    report = json.loads(done.stdout)
    assert report["debiased"] is True
    assert report["difference"]["low"] > 0
    assert [each["value"] for each in report["slices"]] == ["a", "b", "c"]
    # 297 pairs and three lost ones, each worth −1 to 1 at most: the bounds lie 2 × 3 ÷ 300 apart
    assert report["bounds"][1] - report["bounds"][0] == pytest.approx(0.02)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a.jsonl", "a.jsonl"), "given as both A and B"),
        (("a.jsonl", "empty.jsonl"), "no grades in it"),
        (("a.jsonl", "other.jsonl"), "not by one judge (model: 'm' and 'm2')"),
        (("a.jsonl", "far.jsonl"), "no id in common"),
        (("a.jsonl", "lost.jsonl"), "is graded on both sides"),
        (("a.jsonl", "b.jsonl", "--gold", "gold_b.jsonl"), "has no column gold_a"),
        (("a.jsonl", "b.jsonl", "--gold-a", "bare.csv"), "bare.csv: has no column id; gold labels are joined by id"),
        (("a.jsonl", "b.jsonl", "--gold-a", "far.jsonl"), "no labelled row is in the grades"),
        (("a.jsonl", "b.jsonl", "--gold", "gold.jsonl", "--gold-b", "gold_b.jsonl"), "holds both sides' labels"),
        (("a.jsonl", "b.jsonl", "--by", "colour"), "columns found: language, topic"),
        (("a.jsonl", "b.jsonl", "--rubric", "style"), "holds no grades by style; found: answer_correctness"),
    ],
)
def test_what_is_refused(folder, monkeypatch, arguments, said):
    monkeypatch.chdir(folder)
    (folder / "empty.jsonl").write_text("", encoding="utf-8")
    write(folder / "other.jsonl", [graded(0, [0, 0, 0, 0, 1], None, model="m2")])
    (folder / "bare.csv").write_text("output,gold\na,4\n", encoding="utf-8")
    write(folder / "far.jsonl", [graded(0, [0, 0, 0, 0, 1], 4.0, id="far")])
    write(folder / "lost.jsonl", [failed(graded(0, [0, 0, 0, 0, 1], None))])
    # in process, for speed: isograde turns a UserError into exit code 2
    done = CliRunner().invoke(cli, ["compare", *arguments])
    assert isinstance(done.exception, UserError)
    assert said in str(done.exception)


def test_one_pair(isograde, folder):
    write(folder / "one.jsonl", [graded(0, [0, 0, 0, 0, 1], 4.0)])
    write(folder / "other.jsonl", [graded(0, [1, 0, 0, 0, 0], 0.0)])
    done = isograde("compare", "one.jsonl", "other.jsonl", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No difference between A and B is shown")


def test_estimate(isograde, folder):
    done = isograde("estimate", "a.jsonl", "--gold", "sheet.csv", "--report", "mean.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("The mean score is 0.")
    assert "60 in 60 groups, weighted" in done.stdout  # the sheet says with what probability its rows were drawn
    assert "Rogan–Gladen" in (folder / "mean.md").read_text(encoding="utf-8")


def test_estimate_without_labels(folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(cli, ["estimate", "a.jsonl"])
    assert isinstance(done.exception, UserError)
    assert "no graded row has a gold label" in str(done.exception)


def test_calibrated_scores_are_compared_where_both_sides_have_them(tmp_path):
    for name, score in (("a", 0.2), ("b", 0.5)):
        calibrated = {"level": 4 * score, "score": score, "probabilities": dict.fromkeys("01234", 0.2), "p_pass": score}
        write(tmp_path / f"{name}.jsonl", [graded(i, [0, 0, 1, 0, 0], None, calibrated=calibrated) for i in range(3)])
    report = compare_runs(tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert report.difference.value == pytest.approx(0.3)
    assert dict(report.judge)["scores of single items"] == "calibrated"
    # on one side only, the raw expected level of both is compared: 2 of 4
    write(tmp_path / "raw.jsonl", [graded(i, [0, 0, 1, 0, 0], None) for i in range(3)])
    report = compare_runs(tmp_path / "a.jsonl", tmp_path / "raw.jsonl")
    assert report.difference.value == 0.0
