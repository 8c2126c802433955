"""``isograde score --metric claim_f1``: its options, and how it is run."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any, TypeVar

import click

from isograde.cli.options import api_key
from isograde.correctness import AnswerCorrectness
from isograde.correctness.calibrated import holds_signals
from isograde.datasets import Rows
from isograde.errors import UserError
from isograde.judge import Judge
from isograde.runs.correctness import plan, score
from isograde.runs.correctness_lines import CorrectnessWriter
from isograde.runs.correctness_summary import CorrectnessSummary, correctness_view
from isograde.runs.interrupt import gently
from isograde.runs.results import grades_file
from isograde.runs.show import console
from isograde.runs.watch import watched

__all__ = ["claim_f1", "correctness_of", "correctness_options"]

F = TypeVar("F", bound=Callable[..., Any])
Told = Callable[[CorrectnessWriter, Path | IO[str]], AbstractContextManager[None]]


def correctness_options(command: F) -> F:
    """Add the options of answer correctness."""
    for option in reversed(
        [
            click.option("--weights", default="0.75,0.25", show_default=True, metavar="F,S",
                         help="claim_f1: weights of F-beta and similarity; 1,0 needs no embeddings."),
            click.option("--beta", type=click.FloatRange(min=0), default=1.0, show_default=True,
                         help="claim_f1: over 1 recall weighs more."),
            click.option("--recall-over", type=click.Choice(["reference", "response"]),
                         help="claim_f1: whose claims recall counts; reference, unless verdicts are generated."),
            click.option("--verdicts", type=click.Choice(["logprobs", "generated"]), default="logprobs", show_default=True,
                         help="claim_f1: each claim by its probability, or all in one call, as RAGAS does."),
            click.option("--embeddings-model", metavar="NAME", help="claim_f1: embeddings model at a server."),
            click.option("--embeddings-base-url", metavar="URL", help="claim_f1: its server; --base-url's unless given."),
            click.option("--embeddings-api-key-env", metavar="NAME", help="claim_f1: variable that holds that server's key."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def correctness_of(
    judge: Judge,
    *,
    weights: str,
    beta: float,
    recall_over: Any,
    verdicts: Any,
    embeddings_model: str | None,
    embeddings_base_url: str | None,
    embeddings_api_key_env: str | None,
    base_url: str | None,
    api_key_env: str | None,
    calibration: str | None = None,
    **_: Any,
) -> AnswerCorrectness:
    """Make the metric that the options speak of.

    Raises
    ------
    UserError
        If they do not fit together.
    """
    try:
        pair = [float(each) for each in weights.split(",")]
    except ValueError:
        raise UserError(f"--weights {weights!r}: write two numbers, for instance --weights 0.75,0.25") from None
    embeddings = None
    if embeddings_model is not None:
        own = embeddings_base_url is not None
        from isograde.backends.embeddings import http_embeddings

        embeddings = http_embeddings(
            embeddings_model,
            base_url=embeddings_base_url if own else base_url,
            api_key=api_key(embeddings_api_key_env if own or embeddings_api_key_env else api_key_env),
        )
    elif embeddings_base_url is not None:
        raise UserError("--embeddings-base-url needs --embeddings-model: which of the server's models embeds?")
    try:
        chosen: dict[str, Any] = {"beta": beta, "recall_over": recall_over, "verdicts": verdicts}
        if calibration is not None and holds_signals(calibration):
            chosen["calibrator"] = calibration
        return AnswerCorrectness(judge, embeddings, weights=pair, **chosen)
    except UserError as error:
        told = str(error).replace("pass embeddings=…, or weights=[1.0, 0.0]", "name --embeddings-model, or --weights 1,0,")
        raise UserError(told) from None


def claim_f1(
    rows: Rows,
    judges: Sequence[Judge],
    told: Told,
    *,
    read: Sequence[str],
    output: str | None,
    limit: int | None,
    threshold: float | None,
    dry_run: bool,
    force: bool,
    report: str | None,
    **options: Any,
) -> CorrectnessSummary | None:
    """Score rows by answer correctness, write them and show the summary; None where nothing was to be sent.

    Raises
    ------
    UserError
        If an option does not go with this metric.
    """
    if len(judges) > 1:
        raise UserError("--metric claim_f1 takes one --rubric, whose grade stands beside the value")
    if report is not None:
        raise UserError("--report is for --metric rubric; leave it out, the lines of -o hold every part")
    metric = correctness_of(judges[0], **options)
    if dry_run:
        click.echo(json.dumps(plan(rows, metric, limit=limit), ensure_ascii=False, indent=2))
        return None
    target = sys.stdout if output is None or output == "-" else grades_file(output, force=force, apart_from=read)
    with (
        gently(_say) as stopped,
        CorrectnessWriter(target, force=force) as writer,
        told(writer, target),
    ):
        n = rows.n if limit is None or rows.n is None else min(limit, rows.n)
        with watched(n) as progress:
            wanted: dict[str, Any] = {"limit": limit, "threshold": threshold, "stopped": stopped}
            summary = score(rows, metric, writer=writer, on_result=progress, **wanted)
    console(stderr=True).print(correctness_view(summary))
    if stopped():
        _say(f"{summary.n} rows are finished; with --force the same command begins anew, and asks only what is not in the store")
        raise click.Abort
    if isinstance(target, Path):
        click.echo(f"results are in {target}", err=True)
    return summary


def _say(said: str) -> None:
    click.echo(f"isograde: {said}", err=True)
