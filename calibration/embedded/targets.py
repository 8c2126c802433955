"""An example to train on, and soft targets that respect the order of the levels."""

from __future__ import annotations

from dataclasses import dataclass

Target = tuple[float, float, float, float, float]
RIGHT: Target = (0.0, 0.0, 0.02, 0.10, 0.88)
WRONG: Target = (0.88, 0.10, 0.02, 0.0, 0.0)
# A person's «incorrect» says less than «contradictory»: it may hold a correct part
INCORRECT: Target = (0.58, 0.25, 0.12, 0.04, 0.01)
CONTRADICTORY: Target = (0.84, 0.12, 0.04, 0.0, 0.0)
CORRECT: Target = (0.0, 0.02, 0.05, 0.18, 0.75)


@dataclass(frozen=True, kw_only=True)
class Example:
    """One text to grade and the probability of each level that the judge should give."""

    source: str
    input: str
    expected: str
    output: str
    target: Target


def graded(level: float, *, smoothing: float = 0.08) -> Target:
    """Split a level between 0 and 4 on its two neighbours, and let a little leak one level further."""
    level = min(4.0, max(0.0, level))
    low = min(3, int(level))
    sharp = [0.0] * 5
    sharp[low], sharp[low + 1] = 1 - (level - low), level - low
    soft = [0.0] * 5
    for i, mass in enumerate(sharp):
        soft[i] += mass * (1 - 2 * smoothing)
        soft[max(i - 1, 0)] += mass * smoothing
        soft[min(i + 1, 4)] += mass * smoothing
    return (soft[0], soft[1], soft[2], soft[3], soft[4])
