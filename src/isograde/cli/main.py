"""The ``isograde`` command and its exit codes."""

from __future__ import annotations

import os
import sys
import warnings
from typing import TextIO

import click

from isograde import __version__
from isograde.cli.calibrate import calibrate
from isograde.cli.check import check
from isograde.cli.compare import compare
from isograde.cli.demo import demo
from isograde.cli.doctor import doctor
from isograde.cli.estimate import estimate
from isograde.cli.plan import plan
from isograde.cli.rubrics import rubrics
from isograde.cli.sample import sample
from isograde.cli.score import score
from isograde.errors import IsogradeError, ServerError

__all__ = ["main"]

_EPILOG = """
\b
Exit codes:
  0    done
  1    a gate failed (--fail-under, --fail-if-worse-by …), or check found a move
  2    a mistake in what was asked: arguments, file, column, rubric
  3    more rows failed than --max-failures allows
  4    the model or its server cannot be used
  130  interrupted; what was finished is kept, and the same command goes on
"""


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="isograde", message="%(prog)s %(version)s")
def cli() -> None:
    """Grade answers by a rubric, and know how far to trust the grade.

    One question with ordered levels is asked about each answer; the level probabilities are read from the logprobs of one answer
    token. Begin with: isograde demo
    """


cli.add_command(demo)
cli.add_command(score)
cli.add_command(doctor)
cli.add_command(rubrics)
cli.add_command(sample)
cli.add_command(calibrate)
cli.add_command(check)
cli.add_command(plan)
cli.add_command(compare)
cli.add_command(estimate)


def _said(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Say a warning as one line, without the place in the code."""
    del category, filename, lineno, file, line
    click.echo(f"isograde: {message}", err=True)


def main() -> None:
    """Run the command line and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal that has no such character shows another one
    warnings.showwarning = _said
    try:
        code = cli.main(prog_name="isograde", standalone_mode=False)
    except click.exceptions.Exit as stop:
        code = stop.exit_code
    except click.ClickException as error:
        error.show()
        code = 2
    except (click.Abort, KeyboardInterrupt):
        click.echo("isograde: interrupted", err=True)
        code = 130
    except IsogradeError as error:
        click.echo(f"isograde: {error}", err=True)
        code = 4 if isinstance(error, ServerError) else 2
    except BrokenPipeError:  # the reader of our output has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code if isinstance(code, int) else 0)
