"""The calibrator: a judge's expected level → a distribution of gold levels."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self

import numpy as np

from isograde._version import __version__
from isograde.calibration._inputs import ScoreScale, as_gold, as_rng, as_weight, canonical, not_empty, on_grid
from isograde.calibration.conformal import Conformal, PredictionInterval
from isograde.calibration.pool import FittedPool, fit_pool, pooled_cdf
from isograde.calibration.provenance import CalibratorFile, JudgeFingerprint, PoolWeights, Provenance, check_same_judge, data_hash
from isograde.errors import CalibrationError, StatisticsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, Groups, IntArray

__all__ = ["Calibrator", "level_probabilities"]

# Items predicted at a time: a table of this many rows stays in the processor's cache.
CHUNK = 16_384
# A cumulative probability this near ½ counts as ½, so that rounding cannot move a median by a level.
HALF = 0.5 - 1e-9
# Levels nearer than this are the same.
SAME_LEVEL = 1e-9


def level_probabilities(distribution: FloatArray, support: FloatArray, n_levels: int) -> FloatArray:
    """Probability of each rubric level: a support point between two levels is split linearly, so the mean is kept.

    Parameters
    ----------
    distribution : ndarray of float, shape (n_items, n_support)
    support : ndarray of float, shape (n_support,)
        In level indices.
    n_levels : int

    Returns
    -------
    ndarray of float, shape (n_items, n_levels)

    Examples
    --------
    >>> level_probabilities(np.array([[0.5, 0.5]]), np.array([1.0, 1.5]), 3)
    array([[0.  , 0.75, 0.25]])
    """
    share = np.clip(1 - np.abs(support[:, np.newaxis] - np.arange(n_levels)), 0, None)
    probabilities: FloatArray = distribution @ share
    return probabilities


def lower_median(cdf: FloatArray, support: FloatArray) -> FloatArray:
    """Least support point with a cumulative probability of ½ or more; cdf (n_items, n_support − 1 or n_support)."""
    below_half: IntArray = (cdf[:, : len(support) - 1] < HALF).sum(axis=1)
    return support[below_half]


class Calibrator:
    """Isotonic distributional regression on the expected level, pooled with the two simplest forecasts.

    Three forecasts of the gold level are averaged: isotonic distributional regression on the judge's expected level (the mean
    over half-samples of the groups, up to 10,000 labels); climatology, the training labels' own distribution; and a point mass
    at the raw expected level, split linearly between its neighbours on the support. Their weights are a soft minimum, over a
    grid, of the CRPS on groups that the forecasts were not fitted on. With few labels, or a judge that knows nothing, the pool
    stays near what is safe; with many it is free. All three rise with the expected level, so every prediction does.

    Parameters
    ----------
    n_levels : int, optional
        Number of levels of the rubric. Read from the columns when fitted on probabilities; for plain scores 5 (levels 0–4) unless
        given.
    score_range : tuple of float, optional
        For plain scores: the scores that stand for the lowest and the highest level, (0, 1) for RAGAS. Without it plain scores
        only order the items, and the raw point mass has no part in the pool.
    n_subsamples : int, default 50
        Half-samples that are averaged, drawn as pairs of complements; 0 for a single isotonic fit.
    judge : JudgeFingerprint, optional
        The judge that gives the scores; kept in the file and compared by ``check_judge``.
    label_source : str, optional
        Who gave the labels; kept in the file.

    Attributes
    ----------
    support_ : ndarray of float, shape (n_support,)
        Every level and every gold value seen, in level indices, ascending.
    weights_ : PoolWeights
        How far each forecast is trusted.
    climatology_ : ndarray of float, shape (n_support,)
        The training labels' own distribution.
    provenance_ : Provenance

    References
    ----------
    Henzi, Ziegel & Gneiting (2021), Isotonic distributional regression, JRSS B 83, doi 10.1111/rssb.12450.

    Examples
    --------
    >>> gold = np.tile([0, 1, 2, 3, 4], 20)
    >>> scores = 0.2 + 0.1 * gold  # a judge that orders well and never leaves the low half
    >>> calibrator = Calibrator(n_levels=5, score_range=(0, 1)).fit(scores, gold)
    >>> calibrator.predict([0.2, 0.4, 0.6])
    array([0., 2., 4.])
    >>> Calibrator.from_json(calibrator.to_json()).predict_mean([0.4]).round(2)
    array([2.])
    """

    support_: FloatArray
    weights_: PoolWeights
    climatology_: FloatArray
    provenance_: Provenance

    def __init__(
        self,
        *,
        n_levels: int | None = None,
        score_range: tuple[float, float] | None = None,
        n_subsamples: int = 50,
        judge: JudgeFingerprint | None = None,
        label_source: str | None = None,
    ) -> None:
        self.n_levels = n_levels
        self.score_range = score_range
        self.n_subsamples = n_subsamples
        self.judge = judge
        self.label_source = label_source
        self._scale: ScoreScale | None = None
        self._pool: FittedPool | None = None
        # The intervals, or how to make them: nobody who asks for none waits for ten more fits.
        self._conformal: Conformal | Callable[[], Conformal] | None = None

    def fit(
        self,
        probabilities: ArrayLike,
        gold: ArrayLike,
        *,
        groups: Groups | None = None,
        sample_weight: ArrayLike | None = None,
        rng: RNG = None,
    ) -> Self:
        """Fit to gold labels.

        Parameters
        ----------
        probabilities : array_like, shape (n_items, n_levels) or (n_items,)
            The judge's probability of each level, or plain scores that rise with quality.
        gold : array_like, shape (n_items,)
            Gold levels on 0 … n_levels − 1; fractions are allowed.
        groups : sequence, shape (n_items,), optional
            Items that share a question, kept together when forecasts are compared. None in it is a group of its own.
        sample_weight : array_like, shape (n_items,), optional
            A weight of 2 is a row given twice, in its group; a weight of 0 is a row left out.
        rng : numpy.random.Generator or int, optional
            Draws the half-samples. None is a fixed stream: the same labels give the same calibrator.

        Returns
        -------
        Calibrator
            Itself.

        Raises
        ------
        CalibrationError
            The inputs do not fit together; the message names the row.
        """
        scale, score = ScoreScale.of(probabilities, n_levels=self.n_levels, score_range=self.score_range)
        not_empty(score)
        if self.n_subsamples < 0:
            raise CalibrationError("n_subsamples must be 0 or more")
        levels = as_gold(gold, len(score), scale.n_levels)
        sample = canonical(score, on_grid(levels, scale.n_levels), as_weight(sample_weight, len(score)), groups)
        self.support_ = np.union1d(np.arange(scale.n_levels, dtype=np.float64), sample.gold)
        self._scale = scale
        generator = as_rng(rng)
        own = generator.spawn(1)[0]
        self._pool = fit_pool(sample, self.support_, scale.level(sample.score), self.n_subsamples, generator)
        self._conformal = partial(Conformal.fit, sample, self.support_, scale, self.n_subsamples, own)
        isotonic, climatology, raw = self._pool.weights.tolist()
        self.weights_ = PoolWeights(isotonic=isotonic, climatology=climatology, raw=raw)
        self.climatology_ = _masses(self._pool.climatology[np.newaxis])[0]
        self.provenance_ = Provenance(
            n=len(sample.score),
            n_groups=sample.n_groups,
            label_source=self.label_source,
            data_hash=data_hash(sample),
            library_version=__version__,
            judge=self.judge,
        )
        return self

    def predict(self, probabilities: ArrayLike) -> FloatArray:
        """Lower median of the calibrated distribution, which minimises MAE.

        Parameters
        ----------
        probabilities : array_like, shape (n_items, n_levels) or (n_items,)
            In the form that was fitted. Scores beyond the fitted ones are treated as the nearest fitted one.

        Returns
        -------
        ndarray of float, shape (n_items,)
            In level indices, each a point of ``support_``.

        Raises
        ------
        CalibrationError
            The form differs from the fitted one, or a value is not finite; the message names the row.
        StatisticsError
            Nothing has been fitted.
        """
        return self._collect(probabilities, lambda cdf: lower_median(cdf, self.support_))

    def predict_mean(self, probabilities: ArrayLike) -> FloatArray:
        """Mean of the calibrated distribution, shape (n_items,); parameters and errors as in ``predict``."""
        return self._collect(probabilities, self._means)

    def predict_distribution(self, probabilities: ArrayLike) -> FloatArray:
        """Probability of each point of ``support_``, shape (n_items, n_support); parameters and errors as in ``predict``."""
        return self._collect(probabilities, _masses)

    def predict_proba(self, probabilities: ArrayLike) -> FloatArray:
        """Probability of each level, shape (n_items, n_levels); parameters and errors as in ``predict``.

        A support point between two levels is split linearly between them, so the mean is that of ``predict_mean``.
        """
        _, scale = self._fitted()
        return self._collect(probabilities, lambda cdf: level_probabilities(_masses(cdf), self.support_, scale.n_levels))

    def predict_at_least(self, probabilities: ArrayLike, level: float) -> FloatArray:
        """P(gold ≥ level), shape (n_items,); the level is an index, fractions allowed. The rest is as in ``predict``.

        Examples
        --------
        >>> gold = np.repeat([0, 4], 10)
        >>> Calibrator(score_range=(0, 1)).fit(gold / 4, gold).predict_at_least([0.0, 1.0], 3).round(2)
        array([0.02, 0.98])
        """
        self._fitted()
        # Fractional gold, such as thirds, is not exact in binary.
        beyond = self.support_ >= level - SAME_LEVEL
        return self._collect(probabilities, lambda cdf: _masses(cdf)[:, beyond].sum(axis=1))

    def predict_interval(
        self, probabilities: ArrayLike, confidence_level: float = 0.9, *, randomized: bool = False, rng: RNG = None
    ) -> PredictionInterval:
        """Interval on the ordinal scale that holds the gold level with a stated probability, whatever the judge is like.

        Cross-conformal (CV+) on ordinal sets; see :mod:`isograde.calibration.conformal` for the method and what is proven of it.

        Parameters
        ----------
        probabilities : array_like, shape (n_items, n_levels) or (n_items,)
            In the form that was fitted.
        confidence_level : float, default 0.9
            1 − α. Fewer than 1/α − 1 groups of labels cannot bound gold so surely: the interval is then the whole scale.
        randomized : bool, default False
            Break ties at random: coverage is then what was asked, and not more where levels are coarse. A set may be empty.
        rng : numpy.random.Generator or int, optional
            Breaks the ties. None is a fixed stream.

        Returns
        -------
        PredictionInterval

        Raises
        ------
        CalibrationError
            As in ``predict``, or the confidence level is none.
        StatisticsError
            Nothing has been fitted, or the file was written by a version that had no intervals.

        Examples
        --------
        >>> gold = np.tile([0, 1, 2, 3, 4], 20)
        >>> calibrator = Calibrator(score_range=(0, 4)).fit(np.clip(gold + np.resize([0.4, -0.4, 0], 100), 0, 4), gold)
        >>> interval = calibrator.predict_interval([0.0, 2.5])
        >>> interval.low, interval.high
        (array([0., 2.]), array([0., 3.]))
        """
        _, scale = self._fitted()
        score = scale.score(probabilities)
        uniform = as_rng(rng).random(len(score)) if randomized else None
        return self._intervals().predict(score, scale.n_levels, confidence_level, uniform)

    @property
    def has_intervals(self) -> bool:
        """Whether ``predict_interval`` can answer; False for the files of versions that had no intervals."""
        return self._conformal is not None

    def unfitted(self) -> Self:
        """Return a new calibrator with the same parameters and no labels."""
        return type(self)(
            n_levels=self.n_levels,
            score_range=self.score_range,
            n_subsamples=self.n_subsamples,
            judge=self.judge,
            label_source=self.label_source,
        )

    def check_judge(self, judge: JudgeFingerprint) -> None:
        """Raise CalibrationError, naming each difference, unless this calibrator was fitted on that judge."""
        self._fitted()
        check_same_judge(self.provenance_.judge, judge)

    def to_json(self) -> str:
        """Write the calibrator as JSON, with thresholds, weights and provenance (:class:`CalibratorFile`)."""
        pool, scale = self._fitted()
        return CalibratorFile(
            input=scale.kind,
            n_levels=scale.n_levels,
            score_range=scale.score_range,
            support=tuple(self.support_.tolist()),
            thresholds=tuple(pool.knots.tolist()),
            cdf=tuple(tuple(row) for row in pool.cdf.tolist()),
            climatology=tuple(pool.climatology.tolist()),
            weights=self.weights_,
            provenance=self.provenance_,
            intervals=self._intervals().to_file() if self.has_intervals else None,
        ).model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote; it predicts the same, to the last bit.

        Raises
        ------
        CalibrationError
            The text is no calibrator; the message names the field.
        """
        file = CalibratorFile.read(text)
        made = file.provenance
        calibrator = cls(n_levels=file.n_levels, score_range=file.score_range, judge=made.judge, label_source=made.label_source)
        calibrator.support_ = np.asarray(file.support)
        calibrator.weights_ = file.weights
        calibrator.climatology_ = _masses(np.asarray(file.climatology)[np.newaxis])[0]
        calibrator.provenance_ = made
        calibrator._scale = ScoreScale(kind=file.input, n_levels=file.n_levels, score_range=file.score_range)
        calibrator._pool = FittedPool(
            knots=np.asarray(file.thresholds),
            cdf=np.asarray(file.cdf).reshape(len(file.thresholds), len(file.support) - 1),
            climatology=np.asarray(file.climatology),
            weights=np.array([file.weights.isotonic, file.weights.climatology, file.weights.raw]),
        )
        if file.intervals is not None:
            calibrator._conformal = Conformal.from_file(file.intervals, calibrator.support_)
        return calibrator

    def _fitted(self) -> tuple[FittedPool, ScoreScale]:
        """Return the fitted parts."""
        if self._pool is None or self._scale is None:
            raise StatisticsError("this Calibrator is not fitted; call fit or from_json first")
        return self._pool, self._scale

    def _intervals(self) -> Conformal:
        """Return what intervals are made from, fitted when first asked for."""
        if self._conformal is None:
            raise StatisticsError("this calibrator's file carries no intervals; fit it again and save it")
        if not isinstance(self._conformal, Conformal):
            self._conformal = self._conformal()
        return self._conformal

    def _means(self, cdf: FloatArray) -> FloatArray:
        """Mean level from cumulative probabilities; rounding is kept from leaving the scale."""
        mean: FloatArray = self.support_[-1] - cdf @ np.diff(self.support_)
        return np.clip(mean, self.support_[0], self.support_[-1])

    def _collect(self, probabilities: ArrayLike, summarise: Callable[[FloatArray], FloatArray]) -> FloatArray:
        """Summarise the pooled cumulative probabilities, a chunk of items at a time so that memory stays linear."""
        _, scale = self._fitted()
        score = scale.score(probabilities)
        # One empty chunk gives no items their proper shape.
        starts = range(0, max(len(score), 1), CHUNK)
        return np.concatenate([summarise(self._pooled_cdf(score[start : start + CHUNK])) for start in starts])

    def _pooled_cdf(self, score: FloatArray) -> FloatArray:
        """P(gold ≤ support) for every support point but the last, shape (n_items, n_support − 1)."""
        pool, scale = self._fitted()
        return pooled_cdf(pool, score, scale.level(score), self.support_)


def _masses(cdf: FloatArray) -> FloatArray:
    """Probabilities from cumulative probabilities that lack the last 1."""
    padded = np.pad(cdf, ((0, 0), (1, 0)))
    # Sums of rounded floats may pass one another by an ulp.
    masses: FloatArray = np.diff(padded, axis=1, append=1.0)
    return np.clip(masses, 0, 1)
