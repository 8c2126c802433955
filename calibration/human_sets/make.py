"""Calibrators and reports on human-graded sets, with none of their texts.

    python calibration/human_sets/make.py [--shared ../shared] [--rows 400] [--dump grades.jsonl]

Sets with a stored judge (LLM-Rubric: gpt-3.5-turbo-16k on 1–4) are read as they are; the others are graded by the embedded judge.
Each task gets ``NAME.calibrator.json`` and ``NAME.md``; a few also ``NAME.html``, with the plots. ``README.md`` sums up.
``--dump`` keeps the embedded judge's probabilities for ``tests/bench/calibration_table.py --grades``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from isograde import Grade, GradeFailure, Item, Judge, LevelDistribution, Rubric
from isograde.datasets import Row, read_rows
from isograde.records import verdict
from isograde.report import CalibrationReport
from isograde.runs.calibrate import Labelled, fitted, graded_by, reported

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
SOURCES = {
    "llm_rubric_real": "microsoft/LLM-Rubric (MIT), real dialogues, one rater",
    "llm_rubric_synth": "microsoft/LLM-Rubric (MIT), synthetic dialogues, three raters",
    "saf2_en": "SebOchs/SAF, SAF2_0 (MIT), points for short answers, adjudicated",
    "evouna_nq": "wangcunxiang/QA-Eval, EVOUNA (Apache-2.0), right or wrong, one rater",
    "scientsbank_3way": "SemEval-2013 task 7, SciEntsBank (CC BY-SA 3.0), right or wrong",
}
WITH_PLOTS = ("llm_rubric_real-Q0", "llm_rubric_synth-Q0", "saf2_en", "evouna_nq", "scientsbank_3way")


def lines(path: Path) -> Iterator[dict[str, Any]]:
    """Read a gzipped JSONL file."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        yield from map(json.loads, file)


def stored(path: Path) -> Iterator[tuple[str, Labelled]]:
    """Each criterion of a set with a stored judge."""
    tasks: dict[str, list[tuple[Row, Grade]]] = {}
    for index, line in enumerate(lines(path)):
        values = line["judge_level_values"]
        low, high = line["gold_scale"]
        level = {"description": "not stored"}
        rubric = Rubric.model_validate(
            {
                "name": line["criterion"].lower(),
                "description": line["criterion_gloss"],
                "fields": ["output"],
                "instructions": "not stored",
                "levels": [{"label": value, **level} for value in values],
                "item": "{output}",
                "blank_output": "ask",
            }
        )
        mass = sum(line["judge_levels"])
        seen = LevelDistribution(
            labels=rubric.labels, probabilities=tuple(p / mass for p in line["judge_levels"]), observed_mass=line["judge_mass"]
        )
        item = Item(id=line["id"], group=line["group"])
        grade = Grade(
            **verdict(seen, rubric),
            distribution=seen,
            item=item,
            rubric=line["criterion"],
            rubric_fingerprint=f"stored:{line['criterion']}",
            prompt_fingerprint="stored",
            model=line["judge_model"],
            method="answer_token",
        )
        scaled = [(len(values) - 1) * (rating - low) / (high - low) for rating in line["raters"]]
        gold = (len(values) - 1) * (line["gold"] - low) / (high - low)
        row = Row(item=item, gold=gold, raters=tuple(scaled), index=index)
        tasks.setdefault(line["criterion"], []).append((row, grade))
    for name, pairs in sorted(tasks.items()):
        yield (
            f"{path.name.split('.')[0]}-{name}",
            Labelled(rows=tuple(row for row, _ in pairs), grades=tuple(grade for _, grade in pairs), scores=None, n_levels=4),
        )


def embedded(path: Path, n: int, judge: Judge) -> Labelled:
    """Grade rows that no training of an embedded judge has seen, group by group in the order of a hash, and strip the texts."""
    keep = {
        "saf2_en": lambda line: line["split"] == "unseen_questions",
        "evouna_nq": lambda _: True,
        "scientsbank_3way": lambda line: line["split"] == "test-unseen-domains",
    }[path.name.split(".")[0]]
    chosen = [line for line in lines(path) if keep(line) and line["output"] and line["expected"] and line["input"]]
    groups = sorted({line["group"] for line in chosen}, key=lambda group: hashlib.sha256(group.encode()).hexdigest())[:400]
    rank = {group: i for i, group in enumerate(groups)}
    # one row a group in turn, so that few rows still are of many questions
    turns: dict[str, int] = {}
    ordered = []
    for line in chosen:
        if line["group"] in rank:
            turns[line["group"]] = turns.get(line["group"], -1) + 1
            ordered.append((turns[line["group"]], rank[line["group"]], line))
    ordered.sort(key=lambda each: each[:2])
    rows = list(read_rows([line for _, _, line in ordered[:n]]))
    done = [0]

    def tell(_row: Row, _grade: Grade | GradeFailure) -> None:
        done[0] += 1
        if done[0] % 50 == 0:
            print(f"{path.name}: {done[0]} of {len(rows)}", file=sys.stderr, flush=True)

    graded = graded_by(judge, rows, on_grade=tell)
    bare = [Item(id=row.item.id, group=row.item.group) for row in rows]
    return Labelled(
        rows=tuple(replace(row, item=item) for row, item in zip(rows, bare, strict=True)),
        grades=tuple(replace(grade, item=item) for grade, item in zip(graded.grades or (), bare, strict=True)),
        scores=None,
        n_levels=5,
    )


def made(name: str, labelled: Labelled, source: str) -> CalibrationReport:
    """Fit, report, write."""
    calibrator = fitted(labelled, label_source=source)
    report = reported(labelled, label_source=source, title=f"{name}: the judge beside human labels")
    (HERE / f"{name}.calibrator.json").write_text(calibrator.to_json() + "\n", encoding="utf-8")
    (HERE / f"{name}.md").write_text(report.to_markdown(), encoding="utf-8")
    if name in WITH_PLOTS:
        (HERE / f"{name}.html").write_text(report.to_html(), encoding="utf-8")
    return report


def dump(path: Path, task: str, labelled: Labelled) -> None:
    """Append what the calibration benchmark reads."""
    with path.open("a", encoding="utf-8") as file:
        for row, grade in zip(labelled.rows, labelled.grades or (), strict=True):
            if isinstance(grade, Grade) and grade.method != "blank_output":
                probabilities = list(grade.distribution.probabilities)
                line = {"task": task, "probabilities": probabilities, "gold": row.gold, "group": row.item.group}
                file.write(json.dumps(line) + "\n")


def row_of(name: str, report: CalibrationReport) -> str:
    """A line of the table that sums up."""
    mae = report.point_figures[0]
    figures = [mae.calibrated, mae.expected_level, mae.constant]
    values = ["–" if each.value is None else f"{each.value:.3f}" for each in figures]
    cells = [f"[{name}]({name}.md)", f"{report.n_used} ({report.n_groups})", *values, report.trust]
    return f"| {' | '.join(cells)} |"


def main() -> None:
    """Make all, or one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--shared", type=Path, default=ROOT.parent / "shared")
    parser.add_argument("--rows", type=int, default=400, help="rows that the embedded judge grades, a set")
    parser.add_argument("--dump", type=Path, help="file for the embedded judge's probabilities")
    arguments = parser.parse_args()
    data = arguments.shared / "data"
    table = []
    for stem in ("llm_rubric_real", "llm_rubric_synth"):
        for name, labelled in stored(data / f"{stem}.jsonl.gz"):
            table.append(row_of(name, made(name, labelled, SOURCES[stem])))
            print(table[-1], flush=True)
    with Judge() as judge:
        for stem in ("saf2_en", "evouna_nq", "scientsbank_3way"):
            labelled = embedded(data / f"{stem}.jsonl.gz", arguments.rows, judge)
            table.append(row_of(stem, made(stem, labelled, SOURCES[stem])))
            print(table[-1], flush=True)
            if arguments.dump is not None:
                dump(arguments.dump, stem, labelled)
    lines_out = [
        "# Calibration on human-graded sets",
        "",
        "Made by `python calibration/human_sets/make.py`: figures and plots, none of the texts. The sets of LLM-Rubric",
        "hold a stored judge (gpt-3.5-turbo-16k, four levels); the last three were graded by the embedded judge.",
        "Every calibrated figure is out of fold, split by group. None of these calibrators is ever applied unasked.",
        "",
        "| task | rows (groups) | MAE calibrated | MAE raw | MAE constant | trust |",
        "|---|---|---|---|---|---|",
        *table,
        "",
        "Sources:",
        "",
        *(f"- {stem}: {source}" for stem, source in SOURCES.items()),
    ]
    (HERE / "README.md").write_text("\n".join(lines_out) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
