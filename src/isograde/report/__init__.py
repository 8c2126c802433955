"""Reports that a team can sign: what the judge is worth beside human gold labels, and what a run without them looks like.

::

    grades, gold ─ calibration ─▶ CalibrationReport ─┬─▶ JSON
    rows, grades ─ run ─────────▶ RunReport ─────────┼─▶ Markdown
                                                     └─▶ HTML, one file, no request leaves it
"""

from __future__ import annotations

from isograde.report.calibration import calibration_report
from isograde.report.models import CalibrationReport, RunReport
from isograde.report.run import RunCollector, run_report
from isograde.report.signal_parts import Cost, SignalRow, SignalTable
from isograde.report.signals import signal_table

__all__ = [
    "CalibrationReport",
    "Cost",
    "RunCollector",
    "RunReport",
    "SignalRow",
    "SignalTable",
    "calibration_report",
    "run_report",
    "signal_table",
]
