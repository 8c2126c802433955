"""``isograde rubrics``: list, show and check."""

from __future__ import annotations

import click

from isograde.prompt import render
from isograde.records import Item
from isograde.rubric import ITEM_FIELDS, load_rubric, rubric_names

__all__ = ["rubrics"]


@click.group()
def rubrics() -> None:
    """List the shipped rubrics, show what one sends, check your own."""


@rubrics.command("list")
def list_() -> None:
    """List the shipped rubrics."""
    width = max(map(len, rubric_names()))
    for name in rubric_names():
        click.echo(f"{name:<{width}}  {load_rubric(name).description}")


@rubrics.command()
@click.argument("rubric")
def show(rubric: str) -> None:
    """Show the exact messages that RUBRIC (a name or a path) would send about an item."""
    loaded = load_rubric(rubric)
    texts = {name: f"(the item's {name})" for name in loaded.fields}
    own = {name: text for name, text in texts.items() if name in ITEM_FIELDS}
    item = Item(**own, metadata={name: text for name, text in texts.items() if name not in ITEM_FIELDS})
    for message in render(loaded, item).messages():
        click.echo(f"── {message['role']} ──\n{message['content']}\n")
    click.echo(f"levels {', '.join(loaded.labels)} · passes at {loaded.pass_at:g} · blank output: {loaded.blank_output}")
    click.echo(f"fingerprint {loaded.fingerprint}")


@rubrics.command()
@click.argument("paths", nargs=-1, required=True)
def check(paths: tuple[str, ...]) -> None:
    """Check rubric files; the first that breaks a rule is named with the rule."""
    for path in paths:
        loaded = load_rubric(path)
        click.echo(f"{path}: {loaded.name}, {len(loaded.levels)} levels, {loaded.scale}: fine")
