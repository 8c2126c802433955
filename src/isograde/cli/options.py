"""Options that several commands share, and how their text is read."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from isograde.backends.weights import cache_dir
from isograde.errors import UserError
from isograde.methods import CHOSEN
from isograde.rubric import Rubric
from isograde.store import Store

if TYPE_CHECKING:
    from isograde.backends.systemone import SystemOneBackend

__all__ = ["api_key", "column_map", "data_options", "model_options", "opened_store", "scale", "store_options", "systemone"]

F = TypeVar("F", bound=Callable[..., Any])


def model_options(command: F) -> F:
    """Add the options that choose a judge."""
    for option in reversed(
        [
            click.option("--model", help="Model at a server, or a path to a .gguf file. Without it: the embedded model."),
            click.option("--base-url", help="Address of an OpenAI-compatible server, up to /v1."),
            click.option("--wire", type=click.Choice(["chat", "systemone"]), default="chat", show_default=True,
                         help="How the server is spoken to: chat completions, or System One (a decision model)."),
            click.option("--method", type=click.Choice(CHOSEN),
                         help="How grades are read; answer_token (logprobs of one token) unless given."),
            click.option("--samples", type=click.IntRange(min=1),
                         help="Answers a row: 10 with --method sampling, 1 with reasoning_first unless given."),
            click.option("--api-key-env", metavar="NAME", help="Environment variable that holds the server's key."),
            click.option("--rubric", "rubrics", multiple=True, default=["answer_correctness"], show_default=True,
                         help="Shipped name or path of a rubric; may be given several times."),
            click.option("--concurrency", type=click.IntRange(min=1), help="Requests at once; 16 at a server unless given."),
            click.option("--min-mass", type=click.FloatRange(0, 1), default=0.5, show_default=True,
                         help="Probability on level tokens below which a row fails."),
            click.option("--max-tokens", type=click.IntRange(min=1), help="Tokens that a server may generate."),
            click.option("--prefill", is_flag=True, default=None, help="Open the assistant's turn with «Level: » at the server."),
            click.option("--timeout", type=click.FloatRange(min=0, min_open=True),
                         help="Seconds for one try at a server, 60 unless given; up to four more follow."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def store_options(command: F) -> F:
    """Add the options that choose where answers are kept."""
    for option in reversed(
        [
            click.option("--store", metavar="PATH", envvar="ISOGRADE_STORE", show_envvar=True,
                         help="File in which every answer is kept and looked up; in the user's cache unless given."),
            click.option("--no-store", is_flag=True, help="Keep no answers and look none up."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def data_options(command: F) -> F:
    """Add the options that say how rows are read."""
    for option in reversed(
        [
            click.option("--column", "columns", multiple=True, metavar="FIELD=COLUMN",
                         help="Which column (or dotted path) feeds a field, e.g. output=answer.text."),
            click.option("--gold", "gold", multiple=True, metavar="COLUMN", help="Column of gold labels; one a rater."),
            click.option("--gold-scale", metavar="LO:HI", help="Scale of the gold labels, e.g. 0:1."),
            click.option("--no-gold", is_flag=True, help="Leave a column called gold unread."),
            click.option("--limit", type=click.IntRange(min=1), help="Grade only the first rows."),
        ]
    ):  # fmt: skip
        command = option(command)
    return command


def opened_store(path: str | None, *, without: bool) -> Store | None:
    """Open the file of answers; where the cache folder cannot be written, say so and go on without.

    Raises
    ------
    UserError
        If the file that is named, or the one in the cache, cannot be used as one.
    """
    if without:
        return None
    if path is not None:
        return Store(path)
    folder = cache_dir()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        writable = os.access(folder, os.W_OK)
    except OSError:
        writable = False
    if not writable:
        click.echo(f"isograde: {folder} cannot be written, so no answers are kept (--store PATH keeps them elsewhere)", err=True)
        return None
    return Store(folder / "answers.sqlite")


def column_map(columns: tuple[str, ...], rubrics: Iterable[Rubric]) -> dict[str, str]:
    """Read FIELD=COLUMN pairs.

    Raises
    ------
    UserError
        If one is no pair, or names a field that neither an item nor a rubric has.
    """
    known = ["input", "output", "expected", "context", "id", "group", "gold", "gold_scale", "metadata"]
    known += [name for rubric in rubrics for name in rubric.fields if name not in known]
    pairs = [each.partition("=") for each in columns]
    for field, equals, column in pairs:
        if not (field and equals and column):
            raise UserError(f"--column {field + equals + column!r}: write FIELD=COLUMN, for instance --column output=answer")
        if field not in known:
            raise UserError(f"--column {field}={column}: no field is named {field!r}; fields are {', '.join(known)}")
    return {field: column for field, _, column in pairs}


def scale(text: str | None, option: str = "--gold-scale") -> tuple[float, float] | None:
    """Read LO:HI.

    Raises
    ------
    UserError
        If it is no pair of numbers.
    """
    if text is None:
        return None
    low, _, high = text.partition(":")
    try:
        return float(low), float(high)
    except ValueError:
        raise UserError(f"{option} {text!r}: write LO:HI, for instance {option} 0:1") from None


def api_key(name: str | None) -> str | None:
    """Take a key from the environment, so that it is never part of a command line.

    Raises
    ------
    UserError
        If the variable is not set.
    """
    if name is None:
        return None
    if not os.environ.get(name):
        raise UserError(f"--api-key-env {name}: this environment variable is not set")
    return os.environ[name]


def systemone(**given: Any) -> SystemOneBackend:
    """Open a decision model's wire with the options that were given.

    Raises
    ------
    UserError
        If one of them is for chat completions only.
    """
    from isograde.backends.systemone import SystemOneBackend

    for name in ("max_tokens", "prefill"):
        if given.pop(name) is not None:
            raise UserError(f"--{name.replace('_', '-')}: a decision model generates nothing; leave it out with --wire systemone")
    return SystemOneBackend(**{name: value for name, value in given.items() if value is not None})
