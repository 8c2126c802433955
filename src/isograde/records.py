"""What goes in and what comes out: items, level distributions, grades, failures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from isograde.errors import DataError
from isograde.rubric import Rubric

__all__ = ["Calibrated", "FailureStatus", "Grade", "GradeFailure", "Item", "LevelDistribution", "Method", "Samples", "Usage"]

Method: TypeAlias = Literal["answer_token", "sampling", "reasoning_first", "decision_model", "blank_output"]
"""How a grade was come by: read from the answer token, counted over sampled answers, read after reasoning, given by a decision
model, or by the rubric's rule for a blank output."""

FailureStatus: TypeAlias = Literal[
    "server_error",  # an error body, no choices, an HTTP error, not JSON
    "timeout",  # no answer in time
    "filtered",  # a content filter stopped it
    "no_answer",  # nothing, or no level, was answered
    "no_logprobs",  # the answer came without a usable distribution
    "low_mass",  # too little probability on the levels
    "too_long",  # the item does not fit
    "suspected_truncation",  # the server seems to have cut the prompt
    "invalid_item",  # a field that the rubric needs is missing or blank
    "blank_output",  # the output is blank and the rubric says that it fails
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One thing to grade.

    Parameters
    ----------
    input : str or None
        The question or task.
    output : str or None
        The answer that is graded.
    expected : str, sequence of str or None
        The reference, or a list of acceptable ones; each is graded against and the best is kept.
    context : str, sequence of str or None
        What the answer must be faithful to.
    id : str or None
        Unique name of the row.
    group : str or None
        Items that share a question share a group.
    metadata : mapping
        Everything else; a rubric may name its keys as fields.

    Raises
    ------
    DataError
        If a text is not text.

    Examples
    --------
    >>> Item(input="2 + 2?", output="four", expected=["4", "four"]).references
    ('4', 'four')
    """

    input: str | None = None
    output: str | None = None
    expected: str | tuple[str, ...] | None = None
    context: str | tuple[str, ...] | None = None
    id: str | None = None
    group: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("input", "output", "id", "group"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, str):
                raise DataError(f"item {self.id!r}, field {name!r}: must be text, is {type(value).__name__}")
        for name in ("expected", "context"):
            value = getattr(self, name)
            if isinstance(value, list):
                value = tuple(value)
                object.__setattr__(self, name, value)
            if isinstance(value, tuple) and not all(isinstance(text, str) for text in value):
                raise DataError(f"item {self.id!r}, field {name!r}: must be text or a list of texts")
            if value is not None and not isinstance(value, str | tuple):
                raise DataError(f"item {self.id!r}, field {name!r}: must be text or a list of texts, is {type(value).__name__}")

    @property
    def references(self) -> tuple[str, ...]:
        """The acceptable answers; empty where none is given."""
        if self.expected is None:
            return ()
        return (self.expected,) if isinstance(self.expected, str) else self.expected


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of a request; None where the server did not say."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cached_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDistribution:
    """A probability per level, and how much of the truth was seen.

    Attributes
    ----------
    labels : tuple of str, length n
        The levels' labels, from worst to best.
    probabilities : tuple of float, length n
        Normalised over the levels.
    observed_mass : float
        Probability on level tokens before normalising.
    unseen_mass : float
        What the listed values leave to 1; it may lie on any level.
    missing_levels : tuple of str
        Labels with no listed value.
    prefix_probability : float or None
        Probability of the tokens that were sampled before the answer token: 1 where there were none, None where not known.

    Examples
    --------
    >>> seen = LevelDistribution(labels=("0", "1", "2"), probabilities=(0.0, 0.25, 0.75), observed_mass=0.5, unseen_mass=0.5)
    >>> seen.expected_level
    1.75
    >>> seen.expected_level_bounds
    (0.875, 1.875)
    """

    labels: tuple[str, ...]
    probabilities: tuple[float, ...]
    observed_mass: float
    unseen_mass: float = 0.0
    missing_levels: tuple[str, ...] = ()
    prefix_probability: float | None = 1.0

    @property
    def expected_level(self) -> float:
        """Σ i·pᵢ over the level's index i = 0 … n−1, whatever the labels."""
        return sum(i * p for i, p in enumerate(self.probabilities))

    @property
    def expected_level_bounds(self) -> tuple[float, float]:
        """The expected level if all unseen mass lay on the lowest level, and on the highest."""
        observed, unseen = self.observed_mass, self.unseen_mass
        scaled = self.expected_level * observed
        top = len(self.probabilities) - 1
        return scaled / (observed + unseen), (scaled + top * unseen) / (observed + unseen)


@dataclass(frozen=True, slots=True, kw_only=True)
class Samples:
    """What several answers about one item say of their own uncertainty.

    Attributes
    ----------
    n : int
        Answers that were asked for.
    n_invalid : int
        Those that held no level.
    sd : float or None
        In levels. Sampling: posterior standard deviation of the expected level. Reasoning first: standard deviation of the
        expected level between the reasonings, None where only one could be read.
    """

    n: int
    n_invalid: int
    sd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelInterval:
    """Where the gold level lies with a stated probability, on average over items like those that the calibrator was fitted on.

    Attributes
    ----------
    low, high : float
        Ends, in level indices.
    levels : tuple of str
        The levels between them by label, ends between two levels rounded outwards.
    confidence_level : float
    reason : str or None
        Why it is the whole scale; None where the labels are enough.
    """

    low: float
    high: float
    levels: tuple[str, ...]
    confidence_level: float
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """What a human would say, judging by the gold labels that a calibrator was fitted to.

    Attributes
    ----------
    level : float
        Median of the calibrated distribution, in level indices: the level with the least expected absolute error.
    score : float
        Mean of the calibrated distribution ÷ (n−1), in [0, 1].
    probabilities : dict of str to float
        Calibrated probability of each level by its label.
    p_pass : float
        Probability that the gold level reaches the rubric's threshold.
    interval : LevelInterval or None
        Where the gold level lies, at 90 %; None where the calibration carries no intervals (files of versions before them, and
        indices of several signals).
    """

    level: float
    score: float
    probabilities: dict[str, float]
    p_pass: float
    interval: LevelInterval | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeFailure:
    """An item that could not be graded; another type than :class:`Grade`, so that it is never averaged in.

    Attributes
    ----------
    status : str
        One of the closed list ``FailureStatus``.
    message : str
        One line: what happened.
    item : Item or None
        What was to be graded.
    index : int or None
        Position of the item in what was handed in.
    rubric : str or None
        Name of the rubric.
    """

    status: FailureStatus
    message: str
    item: Item | None = None
    index: int | None = None
    rubric: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grade:
    """What the judge says of one item, and what it was made from.

    Attributes
    ----------
    score : float or None
        Expected level ÷ (n−1), in [0, 1]; the expected credit of an unordered rubric, None where it has no credit map.
    label : str
        The expected level in the rubric's own numbers, «3.2 / 4»; without numbers the most probable level's label.
    level : int
        Index of the most probable level, the lowest on ties.
    probabilities : dict of str to float
        Probability of each level by its label, from worst to best.
    confidence : float
        max(0, 1 − Σ pᵢ·|i−level| ÷ D), D the mean of |i−(n−1)/2| over the levels (the definition that TypeSafe publishes for
        its score questions); for a choice the probability of ``level``.
    passed : bool or None
        Whether the score reaches the rubric's threshold; None where there is no score.
    distribution : LevelDistribution
        What was read, with observed mass and bounds.
    rubric, rubric_fingerprint, prompt_fingerprint, model, method : str
        What it was made from; a calibrator is compared by them.
    adapter : str or None
        Fingerprint of a low-rank adapter beside the model's weights.
    calibrated : Calibrated or None
        Beside the raw values, where the judge was given a calibrator.
    caveat : str or None
        What is known to speak against this model as a judge by this rubric, such as that it was not trained for it.
    reference_index : int or None
        Which of several references the grade is against.
    samples : Samples or None
        Where several answers were asked for: how many, how many of them invalid, how far apart.
    item, index, usage, latency_s, server
        The item, its position, tokens, seconds and the server's address; recorded only.
    question_fingerprint : str or None
        Of the whole request or requests, as configured: it differs where the item's texts, the rubric, the model or a parameter
        does. None where nothing was asked.
    stored : bool
        Whether all answers were on file, and nothing was asked; tokens and seconds are then those of the first time.
    """

    score: float | None
    label: str
    level: int
    probabilities: dict[str, float]
    confidence: float
    passed: bool | None
    distribution: LevelDistribution
    rubric: str
    rubric_fingerprint: str
    prompt_fingerprint: str
    model: str
    method: Method
    adapter: str | None = None
    calibrated: Calibrated | None = None
    caveat: str | None = None
    reference_index: int | None = None
    samples: Samples | None = None
    item: Item | None = None
    index: int | None = None
    usage: Usage | None = None
    latency_s: float | None = None
    server: str | None = None
    question_fingerprint: str | None = None
    stored: bool = False

    @property
    def expected_level(self) -> float:
        """Expected level, in 0 … n−1; see :class:`LevelDistribution`."""
        return self.distribution.expected_level


def verdict(distribution: LevelDistribution, rubric: Rubric) -> dict[str, Any]:
    """Derive the figures of a grade from a distribution by a rubric's scale.

    Returns
    -------
    dict
        ``score``, ``label``, ``level``, ``probabilities``, ``confidence`` and ``passed`` as :class:`Grade` takes them.
    """
    p = distribution.probabilities
    n = len(p)
    level = max(range(n), key=lambda i: (p[i], -i))
    if rubric.scale == "ordered":
        score: float | None = min(1.0, max(0.0, distribution.expected_level / (n - 1)))
        # D = mean |i − (n−1)/2|: how far the levels lie from the middle of the scale
        spread = sum(abs(i - (n - 1) / 2) for i in range(n)) / n
        confidence = max(0.0, 1 - sum(p[i] * abs(i - level) for i in range(n)) / spread)
    else:
        credit = [each.credit for each in rubric.levels]
        score = None if credit[0] is None else sum((c or 0.0) * q for c, q in zip(credit, p, strict=True))
        confidence = p[level]
    if rubric.values is None:
        label = rubric.labels[level]
    else:
        own = sum(value * q for value, q in zip(rubric.values, p, strict=True))
        label = f"{own:.1f} / {rubric.labels[-1]}"
    return {
        "score": score,
        "label": label,
        "level": level,
        "probabilities": dict(zip(rubric.labels, p, strict=True)),
        "confidence": confidence,
        "passed": None if score is None else score >= rubric.pass_at - 1e-9,  # 0.75 is 0.75 whatever the sum's last bit
    }
