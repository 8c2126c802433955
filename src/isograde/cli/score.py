"""``isograde score``: grade a file."""

from __future__ import annotations

import atexit
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import click

from isograde.cli.correctness import claim_f1, correctness_options
from isograde.cli.options import (
    api_key,
    column_map,
    data_options,
    model_options,
    opened_store,
    scale,
    store_options,
    systemone,
)
from isograde.correctness.calibrated import holds_signals
from isograde.datasets import Row, read_rows
from isograde.errors import UserError
from isograde.judge import Judge
from isograde.records import Grade, GradeFailure
from isograde.report.run import RunCollector
from isograde.runs.correctness_lines import CorrectnessWriter
from isograde.runs.correctness_summary import CorrectnessSummary
from isograde.runs.interrupt import gently
from isograde.runs.lock import locked
from isograde.runs.results import ResultWriter, grades_file, report_file, write_report
from isograde.runs.resume import begun
from isograde.runs.score import plan
from isograde.runs.score import score as score_rows
from isograde.runs.show import console, summary_view
from isograde.runs.summary import Summary
from isograde.runs.watch import watched

__all__ = ["judges_of", "say", "score"]


_EXAMPLES = """
\b
The embedded model, no key, no server:
  isograde score answers.jsonl -o grades.jsonl
OpenAI's, with OPENAI_API_KEY set:
  isograde score answers.jsonl -o grades.jsonl --model gpt-4.1-mini
A server of your own (vLLM, llama.cpp, SGLang, Ollama, LiteLLM …):
  isograde score answers.jsonl -o grades.jsonl --base-url http://localhost:8000/v1 --model NAME
"""


@click.command(epilog=_EXAMPLES)
@click.argument("file", type=click.Path())
@click.option("-o", "--output", help="File for the grades, .jsonl or .csv. Without it: JSONL on standard output.")
@model_options
@store_options
@data_options
@click.option("--metric", type=click.Choice(["rubric", "claim_f1"]), default="rubric", show_default=True,
              help="claim_f1: answer correctness by claims and similarity, the rubric's grade beside it.")  # fmt: skip
@correctness_options
@click.option(
    "--calibration", metavar="FILE", help="Calibrator of this judge, or of its signals with claim_f1 (from isograde calibrate)."
)
@click.option("--report", help="File for a report of the run without gold: .html, .md or .json.")
@click.option("--threshold", type=click.FloatRange(0, 1), help="Score from which the report counts a row as a pass.")
@click.option(
    "--fail-under", type=click.FloatRange(0, 1), help="Exit with 1 if a rubric's mean score over the graded rows is below this."
)
@click.option("--max-failures", default="5%", show_default=True, metavar="N|P%", help="Exit with 3 if more rows fail than this.")
@click.option("--dry-run", is_flag=True, help="Show the first request and how many calls it takes; send nothing.")
@click.option("--force", is_flag=True, help="Write over an output file that is there; without it, an unfinished run goes on.")
def score(*, file: str, output: str | None, fail_under: float | None, max_failures: str, **options: Any) -> None:
    """Grade the rows of FILE (.jsonl, .csv, .parquet; - is JSONL on standard input).

    A row has a question, an answer and, where the rubric needs it, a reference or a context.
    """
    allowed = _allowed_failures(max_failures)
    of_signals = options["metric"] == "claim_f1" and options["calibration"] is not None and holds_signals(options["calibration"])
    judges = judges_of(**options | ({"calibration": None} if of_signals else {}))
    rows = read_rows(
        _spooled(file),
        columns=column_map(options["columns"], [judge.rubric for judge in judges]),
        gold=[] if options["no_gold"] else list(options["gold"]) or None,
        gold_scale=scale(options["gold_scale"]),
        labels=judges[0].rubric.labels,
    )
    held = None if output is None or output == "-" or options["dry_run"] else Path(output)
    lock = click.get_current_context().with_resource(locked(held))
    if options.pop("metric") == "claim_f1":
        read = [name for name in (file, options["calibration"]) if name is not None]
        figures = claim_f1(rows, judges, _told_what_is_written, read=read, output=output, **options)
        sys.exit(0 if figures is None else exit_code([figures], fail_under, allowed))
    limit = options["limit"]
    if options["dry_run"]:
        click.echo(json.dumps(plan(rows, judges, limit=limit), ensure_ascii=False, indent=2))
        return
    labels = {judge.rubric.name: judge.rubric.labels for judge in judges}
    force, read = options["force"], [name for name in (file, options["calibration"]) if name is not None]
    found = None if force or output is None or output == "-" else begun(output, lock=lock)
    target = (
        sys.stdout if output is None or output == "-" else grades_file(output, force=force or found is not None, apart_from=read)
    )
    written = [target] if isinstance(target, Path) else []
    report = None if options["report"] is None else report_file(options["report"], force=force, apart_from=[*read, *written])
    collector = RunCollector(threshold=options["threshold"], title=f"{Path(file).name}: graded")
    with (
        gently(say) as stopped,
        ResultWriter(target, labels, force=force, append=found is not None) as writer,
        _told_what_is_written(writer, target),
    ):
        n = rows.n if limit is None or rows.n is None else min(limit, rows.n)
        with watched(None if n is None else n * len(judges)) as progress:

            def on_grade(row: Row, grade: Grade | GradeFailure) -> None:
                progress(row, grade)
                if report is not None:
                    collector.add(row, grade)

            going_on: dict[str, Any] = {"stopped": stopped, "found": found, "tell": say}
            summaries = score_rows(rows, judges, writer=writer, limit=limit, on_grade=on_grade, **going_on)
    if report is not None and not stopped():
        write_report(report, collector.report())
    screen = console(stderr=True)
    for summary in summaries:
        screen.print(summary_view(summary))
    if stopped():
        finished = sum(summary.n for summary in summaries)
        if isinstance(target, Path):
            say(f"{finished} finished rows are in {target}; the same command goes on from there")
        raise click.Abort
    if report is not None:
        click.echo(f"the report is in {report}", err=True)
    if isinstance(target, Path):
        click.echo(f"grades are in {target}", err=True)
    sys.exit(exit_code(summaries, fail_under, allowed))


def say(said: str) -> None:
    """Say one line on standard error."""
    click.echo(f"isograde: {said}", err=True)


def judges_of(
    *,
    model: str | None,
    base_url: str | None,
    api_key_env: str | None,
    rubrics: tuple[str, ...],
    concurrency: int | None,
    min_mass: float,
    max_tokens: int | None,
    prefill: bool | None,
    timeout: float | None,
    wire: str = "chat",
    method: str | None = None,
    samples: int | None = None,
    calibration: str | None = None,
    store: str | None = None,
    no_store: bool = True,
    **_: Any,
) -> list[Judge]:
    """Make a judge a rubric, all on one backend; without a store unless the command has the options of one."""
    given: dict[str, Any] = {"model": model, "base_url": base_url, "api_key": api_key(api_key_env), "timeout": timeout}
    given |= {"max_tokens": max_tokens, "prefill": prefill}
    if wire == "systemone":
        given = {"backend": systemone(**given)}
    first = Judge(
        rubric=rubrics[0],
        concurrency=concurrency,
        min_mass=min_mass,
        calibrator=calibration,
        method=method,
        samples=samples,
        store=opened_store(store, without=no_store),
        **{name: value for name, value in given.items() if value is not None},
    )
    return [first, *(first.with_rubric(rubric) for rubric in rubrics[1:])]


def exit_code(
    summaries: Sequence[Summary | CorrectnessSummary], fail_under: float | None, allowed: tuple[int | None, float]
) -> int:
    """Choose the exit code, and say why where it is not 0."""
    count, share = allowed
    if summaries and all(summary.unanswered for summary in summaries):
        click.echo("isograde: no row was graded: the server failed at every one", err=True)
        return 4
    for summary in summaries:
        if summary.n_failed > (share * summary.n if count is None else count):
            click.echo(
                f"isograde: {summary.rubric}: {summary.n_failed} of {summary.n} rows failed, more than --max-failures allows",
                err=True,
            )
            return 3
    for summary in summaries:
        if fail_under is not None and (summary.mean_score is None or summary.mean_score < fail_under):
            mean = "none" if summary.mean_score is None else f"{summary.mean_score:.4f}"
            click.echo(f"isograde: mean score of {summary.rubric} is {mean}, under --fail-under {fail_under:g}", err=True)
            return 1
    return 0


@contextmanager
def _told_what_is_written(writer: ResultWriter | CorrectnessWriter, target: Path | IO[str]) -> Iterator[None]:
    """Say, when a run ends early, where what was finished is."""
    try:
        yield
    except BaseException as error:
        if isinstance(target, Path) and (writer.n_written or not isinstance(error, UserError)):
            click.echo(
                f"{writer.n_written} finished rows are in {target}" if writer.n_written else "nothing was written", err=True
            )
        raise


def _spooled(file: str) -> Path:
    """Keep standard input in a temporary file, since rows are checked before the first is graded."""
    if file != "-":
        return Path(file)
    with tempfile.NamedTemporaryFile("wb", suffix=".jsonl", delete=False) as kept:
        shutil.copyfileobj(sys.stdin.buffer, kept)
    atexit.register(Path(kept.name).unlink, missing_ok=True)
    return Path(kept.name)


def _allowed_failures(text: str) -> tuple[int | None, float]:
    """Read «5%» as a share and «5» as a count."""
    try:
        share = float(text.removesuffix("%")) / 100
        count = None if text.endswith("%") else int(text)
    except ValueError:
        raise UserError(f"--max-failures {text!r}: write a count (10) or a share (5%)") from None
    if share < 0:
        raise UserError(f"--max-failures {text!r}: cannot be negative")
    return count, share
