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

__all__ = ["CalibrationReport", "RunCollector", "RunReport", "calibration_report", "run_report"]
