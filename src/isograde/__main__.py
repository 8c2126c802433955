"""``python -m isograde``."""

from isograde.cli import main

main()
