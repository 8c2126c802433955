"""``isograde doctor``: look at a judge's model before anything is spent on it."""

from __future__ import annotations

import json
import sys
from typing import Any

import click

from isograde.backends.chat import ChatBackend
from isograde.cli.options import model_options, opened_store, store_options
from isograde.cli.score import judges_of
from isograde.errors import UserError
from isograde.runs.attack import attack_view, attacked
from isograde.runs.doctor import diagnosed, diagnosis_view
from isograde.runs.show import console

__all__ = ["doctor"]

_EXAMPLES = """
\b
The embedded model:
  isograde doctor
A server:
  isograde doctor --base-url http://localhost:8000/v1 --model NAME
A decision model, and how far wrong answers can talk it up:
  isograde doctor --wire systemone --base-url http://localhost:8000 --attack
"""


@click.command(epilog=_EXAMPLES)
@model_options
@store_options
@click.option("--attack", is_flag=True, help="Measure also how far injections lift the expected level of wrong answers.")
@click.option("--json", "as_json", is_flag=True, help="Write JSON to standard output.")
def doctor(*, attack: bool, as_json: bool, store: str | None, no_store: bool, **options: Any) -> None:
    """Look at a model: are there logprobs, do levels come as single tokens, what does the server take.

    A few requests of a few tokens each; what was learnt is kept in the store for the runs to come. Exit code 0 means that the
    model can judge, 4 that it cannot.
    """
    if len(options["rubrics"]) > 1:
        raise UserError("one rubric is looked at a time; give --rubric once")
    [judge] = judges_of(**options)  # without a store: what is known of the server is found out anew
    with judge:
        diagnosis = diagnosed(judge)
        kept = opened_store(store, without=no_store) if diagnosis.usable and isinstance(judge.backend, ChatBackend) else None
        if kept is not None and isinstance(judge.backend, ChatBackend):
            with kept:
                judge.backend.save_in(kept)
        found = attacked(judge) if attack and diagnosis.usable else None
    if as_json:
        click.echo(json.dumps({**diagnosis.as_json(), "attack": found and found.as_json()}, ensure_ascii=False, indent=2))
    else:
        console().print(diagnosis_view(diagnosis))
        if found is not None:
            console().print(attack_view(found))
    sys.exit(0 if diagnosis.usable else 4)
