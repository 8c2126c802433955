"""Two graded runs beside one another: what ``isograde compare`` does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from isograde.calibration.comparison import MeanComparison, compare_judged, compare_means
from isograde.calibration.drift import holm
from isograde.errors import DataError, UserError
from isograde.report.columns import MAX_VALUES, Columns
from isograde.report.comparison import ChangedItem, ComparedSlice, ComparisonReport, Pairing, comparison_report, estimate_of
from isograde.report.parts import Estimate
from isograde.runs.graded import GoldFile, read_graded
from isograde.runs.results import FailureLine, GradeLine

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["compare_runs"]

MOST_CHANGED = 50
# Labelled pairs, or pairs where there are no labels, that a slice needs for a figure of its own.
SMALLEST_SLICE = 5


def compare_runs(
    a: Path,
    b: Path,
    *,
    gold_a: GoldFile | None = None,
    gold_b: GoldFile | None = None,
    rubric: str | None = None,
    by: Sequence[str] = (),
    rng: int | None = None,
) -> ComparisonReport:
    """Pair two graded runs by id and say whether B is better than A.

    Parameters
    ----------
    a, b : pathlib.Path
        Grades that ``isograde score`` wrote, of two systems' answers to the same inputs, by one judge.
    gold_a, gold_b : GoldFile or None
        Gold labels of each side; where not given, those that the grades carry.
    rubric : str or None
        Whose grades, where the files hold several.
    by : sequence of str
        Metadata columns to slice by; where empty, every column that cuts the pairs into a few parts.
    rng : int or None
        Seed of folds and sign flips; None is a fixed one.

    Returns
    -------
    ComparisonReport

    Raises
    ------
    DataError
        A file cannot be read, no id is in both, or gold ids are in none.
    UserError
        The runs are of different judges or rubrics, or of a rubric without order.
    """
    if a.exists() and b.exists() and a.samefile(b):
        raise UserError(f"{a}: is given as both A and B; give the grades of two systems")
    first, second = read_graded(a, gold_a, rubric=rubric), read_graded(b, gold_b, rubric=rubric)
    if first.judge is not None and second.judge is not None and (different := first.judge.differences(second.judge)):
        raise UserError(f"{a} and {b} are not by one judge ({'; '.join(different)}); grade both alike")
    both = [key for key in first.lines if key in second.lines]
    if not both:
        raise DataError(f"{a} and {b} have no id in common; grade files whose rows have the same ids")
    pairs = [
        (key, line_a, line_b)
        for key, line_a, line_b in ((key, first.lines[key], second.lines[key]) for key in both)
        if isinstance(line_a, GradeLine) and isinstance(line_b, GradeLine)
    ]
    if not pairs:
        raise DataError(f"none of the {len(both)} ids that {a} and {b} share is graded on both sides")
    table = _Pairs.of(pairs, first.gold, second.gold)
    found = table.compared(np.arange(len(pairs)), rng=rng)
    n_gold_a, n_gold_b = (int(np.isfinite(gold).sum()) for gold in (table.gold_a, table.gold_b))
    pairing = Pairing(
        name_a=a.stem,
        name_b=b.stem,
        n_a=len(first.lines),
        n_b=len(second.lines),
        only_a=len(first.lines) - len(both),
        only_b=len(second.lines) - len(both),
        failed_a=sum(isinstance(first.lines[key], FailureLine) for key in both),
        failed_b=sum(isinstance(second.lines[key], FailureLine) for key in both),
        n_lost=len(first.lines) + len(second.lines) - len(both) - len(pairs),
        n_gold_a=n_gold_a,
        n_gold_b=n_gold_b,
    )
    return comparison_report(
        found,
        pairing,
        slices=_slices(pairs, table, by=by, rng=rng),
        changed=table.changed(),
        judge=(*first.facts(), ("scores of single items", "calibrated" if table.calibrated else "raw expected level")),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pairs:
    """Pairs in columns; a missing gold label is NaN, as NumPy has no other sign for it."""

    keys: list[str]
    probabilities_a: NDArray[np.float64]
    probabilities_b: NDArray[np.float64]
    score_a: NDArray[np.float64]  # calibrated where both sides are
    score_b: NDArray[np.float64]
    calibrated: bool
    gold_a: NDArray[np.float64]
    gold_b: NDArray[np.float64]
    groups: list[str | None]

    @classmethod
    def of(
        cls, pairs: Sequence[tuple[str, GradeLine, GradeLine]], gold_a: Mapping[str, float], gold_b: Mapping[str, float]
    ) -> _Pairs:
        """Put pairs into columns."""
        calibrated = all(line_a.calibrated is not None and line_b.calibrated is not None for _, line_a, line_b in pairs)

        def scores(lines: list[GradeLine]) -> NDArray[np.float64]:
            return np.array([each.calibrated.score if calibrated and each.calibrated else _raw_score(each) for each in lines])

        lines_a, lines_b = [line for _, line, _ in pairs], [line for _, _, line in pairs]
        return cls(
            keys=[key for key, _, _ in pairs],
            probabilities_a=np.array([list(line.probabilities.values()) for line in lines_a]),
            probabilities_b=np.array([list(line.probabilities.values()) for line in lines_b]),
            score_a=scores(lines_a),
            score_b=scores(lines_b),
            calibrated=calibrated,
            gold_a=np.array([gold_a.get(key, np.nan) for key, _, _ in pairs]),
            gold_b=np.array([gold_b.get(key, np.nan) for key, _, _ in pairs]),
            groups=[line_a.group if line_a.group is not None else line_b.group for _, line_a, line_b in pairs],
        )

    def compared(self, rows: NDArray[np.intp], *, rng: int | None) -> MeanComparison:
        """Compare the systems on some of the pairs."""
        groups = [self.groups[row] for row in rows.tolist()]
        gold_a, gold_b = self.gold_a[rows], self.gold_b[rows]
        if (np.isfinite(gold_a) & np.isfinite(gold_b)).any():
            return compare_means(self.probabilities_a[rows], self.probabilities_b[rows], gold_a, gold_b, groups=groups, rng=rng)
        return compare_judged(self.score_a[rows], self.score_b[rows], groups=groups, score_range=(0, 1), rng=rng)

    def changed(self) -> tuple[ChangedItem, ...]:
        """Return the pairs that changed most by the judge, most first."""
        change = np.abs(self.score_b - self.score_a)
        order = np.argsort(-change, kind="stable")[:MOST_CHANGED]
        top = self.probabilities_a.shape[1] - 1

        def gold(level: float) -> float | None:
            return level / top if np.isfinite(level) else None

        return tuple(
            ChangedItem(
                id=self.keys[row],
                score_a=float(self.score_a[row]),
                score_b=float(self.score_b[row]),
                gold_a=gold(float(self.gold_a[row])),
                gold_b=gold(float(self.gold_b[row])),
            )
            for row in order.tolist()
            if change[row] > 0
        )


def _raw_score(line: GradeLine) -> float:
    """Expected level as a score."""
    return line.expected_level / (len(line.probabilities) - 1)


def _slices(
    pairs: Sequence[tuple[str, GradeLine, GradeLine]], table: _Pairs, *, by: Sequence[str], rng: int | None
) -> tuple[ComparedSlice, ...]:
    """Compare on parts of the pairs, cut by metadata that both sides agree on."""
    columns = Columns()
    known: dict[str, None] = {}
    for _, a, b in pairs:
        shared = {name: value for name, value in a.metadata.items() if b.metadata.get(name) == value}
        known |= dict.fromkeys(shared)
        columns.add({name: value for name, value in shared.items() if not by or name in by}, None)
    for name in by:
        if name not in known:
            raise UserError(f"--by {name}: no such metadata on both sides; columns found: {', '.join(known) or 'none'}")
    parts = list(columns.slices())
    for name in by:
        if not any(column == name for column, _, _ in parts):
            raise UserError(
                f"--by {name}: cuts the pairs into no parts, or into too many; give a column of 2 to {MAX_VALUES} values"
            )
    labelled = np.isfinite(table.gold_a) & np.isfinite(table.gold_b)
    counted = labelled if labelled.any() else np.ones(len(pairs), dtype=bool)
    compared = [table.compared(rows, rng=rng) if counted[rows].sum() >= SMALLEST_SLICE else None for _, _, rows in parts]
    adjusted = iter(holm([found.p_value for found in compared if found is not None]))
    few = f"fewer than {SMALLEST_SLICE} {'labelled ' if labelled.any() else ''}pairs"
    made = []
    for (column, value, rows), found in zip(parts, compared, strict=True):
        p = None if found is None else next(adjusted)
        made.append(
            ComparedSlice(
                column=column,
                value=value,
                n_pairs=len(rows),
                n_labelled=int(labelled[rows].sum()),
                difference=Estimate(value=None, n=int(counted[rows].sum()), reason=few) if found is None else estimate_of(found),
                p_adjusted=p,
                shown=p is not None and p <= 0.05,
            )
        )
    return tuple(made)
