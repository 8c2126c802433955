"""A graded run's mean and pass rate from few gold labels: what ``isograde estimate`` does."""

from __future__ import annotations

from pathlib import Path

from isograde.calibration.estimation import estimate_mean, estimate_pass_rate
from isograde.calibration.rectified import Estimand
from isograde.errors import DataError
from isograde.report.mean import MeanReport, mean_report
from isograde.runs.graded import GoldFile, read_graded
from isograde.runs.results import GradeLine

__all__ = ["estimate_run"]


def estimate_run(
    grades: Path,
    gold: GoldFile | None = None,
    *,
    estimand: Estimand = "population",
    pass_at: float = 0.75,
    rubric: str | None = None,
    rng: int | None = None,
) -> MeanReport:
    """Estimate the mean score and the pass rate of a graded run of which few rows have gold labels.

    Parameters
    ----------
    grades : pathlib.Path
        Grades that ``isograde score`` wrote.
    gold : GoldFile or None
        Gold labels by id; where not given, those that the grades carry. A sheet that ``isograde plan`` drew brings its inclusion
        probabilities along.
    estimand : {"population", "set"}
        The mean of what the rows were drawn from, or of these rows alone.
    pass_at : float
        Score in [0, 1] from which an answer passes.
    rubric : str or None
        Whose grades, where the file holds several rubrics'.
    rng : int or None
        Seed of the folds; None is a fixed one.

    Returns
    -------
    MeanReport

    Raises
    ------
    DataError
        A file cannot be read, no row is graded, or none has a gold label.
    UserError
        The rubric is not in the file or has no order, or the grades are of several judges.
    """
    run = read_graded(grades, gold, rubric=rubric)
    lines = [(key, line) for key, line in run.lines.items() if isinstance(line, GradeLine)]
    if not lines:
        raise DataError(f"{grades}: no row is graded, so there is nothing to estimate")
    labels = [run.gold.get(key) for key, _ in lines]
    if not any(label is not None for label in labels):
        raise DataError(f"{grades}: no graded row has a gold label; give labels of some rows with --gold FILE")
    probabilities = [list(line.probabilities.values()) for _, line in lines]
    groups = [line.group for _, line in lines]
    # Unlabelled rows' probabilities are not read; 1 stands for none.
    inclusion = [run.inclusion.get(key, 1.0) for key, _ in lines] if run.inclusion else None
    top = len(probabilities[0]) - 1
    mean = estimate_mean(probabilities, labels, groups=groups, inclusion_probabilities=inclusion, estimand=estimand, rng=rng)
    rate = estimate_pass_rate(
        probabilities,
        labels,
        pass_level=pass_at * top,
        groups=groups,
        inclusion_probabilities=inclusion,
        estimand=estimand,
        rng=rng,
    )
    return mean_report(
        mean,
        rate,
        n_levels=top + 1,
        pass_at=pass_at,
        n_failed=len(run.lines) - len(lines),
        weighted=inclusion is not None,
        title=f"How good are the answers? {grades.stem}",
        judge=run.facts(),
    )
