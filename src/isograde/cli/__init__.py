"""The command line: parsing and exit codes only."""

from isograde.cli.main import main

__all__ = ["main"]
