"""The calibrator of several signals: one index that rises with each, then the calibrator as it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Literal, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from isograde.calibration._inputs import DEFAULT_LEVELS, RANGE_TOLERANCE, as_floats, as_gold, as_rng, as_weight, group_codes
from isograde.calibration.calibrator import Calibrator
from isograde.calibration.index import fit_shares
from isograde.calibration.provenance import ROUNDING, CalibratorFile, JudgeFingerprint, Probability, Provenance
from isograde.errors import CalibrationError, StatisticsError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from isograde.calibration._inputs import RNG, FloatArray, Groups

__all__ = ["SignalCalibrator", "SignalCalibratorFile"]

Signals = Mapping[str, "ArrayLike"]


class SignalCalibratorFile(BaseModel):
    """A fitted calibrator of several signals on disk.

    Attributes
    ----------
    kind, format
        Always ``"isograde.signal_calibrator"`` and 1.
    weights, shares : dict of str to float
        Of each signal in the index, and how much of the index's movement is its own; each sums to 1.
    settings : dict of str to str
        How the signals were made, apart from the judge; compared by ``check_settings``.
    calibrator : CalibratorFile
        Fitted on the index, which lies in [0, 1]; its provenance is that of the whole.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Literal["isograde.signal_calibrator"] = "isograde.signal_calibrator"
    format: Literal[1] = 1
    weights: Annotated[dict[str, Probability], Field(min_length=1)]
    shares: dict[str, Probability]
    settings: dict[str, str]
    calibrator: CalibratorFile

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        """Refuse weights that are no index, and a calibrator of something else."""
        if list(self.weights) != list(self.shares):
            raise ValueError("weights and shares must name the same signals")
        if any(abs(sum(each.values()) - 1) > ROUNDING for each in (self.weights, self.shares)):
            raise ValueError("weights and shares must sum to 1")
        if self.calibrator.input != "scores" or self.calibrator.score_range != (0, 1):
            raise ValueError("calibrator must be of plain scores in 0 … 1")
        return self


class SignalCalibrator:
    """Several signals of quality, made into one index by weights that human labels decide, then calibrated.

    A signal is any score in [0, 1] that should rise with quality: the rubric's expected level ÷ (n_levels − 1), a claim F-beta,
    a similarity, another tool's score. The index is Σ weight × signal with weights of 0 or more that sum to 1, so it lies in
    [0, 1] and a prediction never falls when a signal rises. The weights are a soft minimum, over a grid of the simplex of the
    signals at unit spread, of the squared error of a line in the index on groups that the line was not fitted to; a prior leans
    to few signals. On the index stands a :class:`~isograde.calibration.Calibrator`. Weights and calibrator see the same labels:
    measure both on labels that neither has seen, as :func:`isograde.report.signal_table` does.

    No signal is ever filled in: a row that lacks one is left out by the caller and counted. There is no ``predict_interval``: the
    weights have seen the labels, and intervals made as if they had not cover too little (0.86 in place of 0.9 with five signals
    and forty labels).

    Parameters
    ----------
    n_levels : int, optional
        Number of levels of the rubric; 5 (levels 0–4) unless given.
    n_subsamples : int, default 50
        As in :class:`~isograde.calibration.Calibrator`.
    judge : JudgeFingerprint, optional
        The judge behind the signals; kept in the file and compared by ``check_judge``.
    settings : mapping of str to str, optional
        How the signals were made, apart from the judge (embeddings, beta …); kept in the file and compared by
        ``check_settings``.
    label_source : str, optional
        Who gave the labels; kept in the file.

    Attributes
    ----------
    weights_ : dict of str to float
        Of each signal in the index.
    shares_ : dict of str to float
        How much of the index's movement is each signal's own: weight × the signal's standard deviation, summing to 1. A signal
        that hardly varies needs a large weight for a small share, so this is what says how much a signal matters.
    support_ : ndarray of float, shape (n_support,)
        As in :class:`~isograde.calibration.Calibrator`.
    provenance_ : Provenance

    References
    ----------
    Breiman (1996), Stacked regressions, Machine Learning 24, doi 10.1007/BF00117832: non-negative weights by held-out error.
    Horowitz (2009), Semiparametric and nonparametric methods in econometrics, ch. 2, doi 10.1007/978-0-387-92870-8: the
    single-index model, one unknown rising function of a weighted sum.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> gold = rng.integers(0, 5, 200)
    >>> signals = {"rubric": np.clip(gold / 4 + rng.normal(0, 0.2, 200), 0, 1), "noise": rng.random(200)}
    >>> calibrator = SignalCalibrator().fit(signals, gold)
    >>> calibrator.weights_["rubric"] > 0.9
    True
    >>> calibrator.predict({"rubric": [0.0, 1.0], "noise": [0.5, 0.5]})
    array([0., 4.])
    """

    weights_: dict[str, float]
    shares_: dict[str, float]
    support_: FloatArray
    provenance_: Provenance

    def __init__(
        self,
        *,
        n_levels: int | None = None,
        n_subsamples: int = 50,
        judge: JudgeFingerprint | None = None,
        settings: Mapping[str, str] | None = None,
        label_source: str | None = None,
    ) -> None:
        self.n_levels = n_levels
        self.n_subsamples = n_subsamples
        self.judge = judge
        self.settings = settings
        self.label_source = label_source
        self._calibrator: Calibrator | None = None

    def fit(
        self,
        signals: Signals | ArrayLike,
        gold: ArrayLike,
        *,
        groups: Groups | None = None,
        sample_weight: ArrayLike | None = None,
        rng: RNG = None,
    ) -> Self:
        """Fit to gold labels.

        Parameters
        ----------
        signals : mapping of str to array_like, shape (n_items,) each, or array_like, shape (n_items, n_signals)
            Each in [0, 1], without gaps. The columns of an array are called "0", "1" ….
        gold : array_like, shape (n_items,)
            Gold levels on 0 … n_levels − 1; fractions are allowed.
        groups, sample_weight, rng
            As in :meth:`Calibrator.fit`.

        Returns
        -------
        SignalCalibrator
            Itself.

        Raises
        ------
        CalibrationError
            The inputs do not fit together; the message names the row and the signal.
        """
        names, table = _table(signals)
        n = len(table)
        if not n:
            raise CalibrationError("there are no labelled rows; give at least one")
        n_levels = DEFAULT_LEVELS if self.n_levels is None else self.n_levels
        levels, weight = as_gold(gold, n, n_levels), as_weight(sample_weight, n)
        used = np.flatnonzero(weight > 0)
        group = np.unique(group_codes(groups, n)[used], return_inverse=True)[1]
        weights, shares = fit_shares(table[used], levels[used], weight[used], group, int(group.max()) + 1)
        self.weights_, self.shares_ = (dict(zip(names, each.tolist(), strict=True)) for each in (weights, shares))
        self._calibrator = Calibrator(
            n_levels=n_levels,
            score_range=(0, 1),
            n_subsamples=self.n_subsamples,
            judge=self.judge,
            label_source=self.label_source,
        ).fit(_weighted(table, weights), levels, groups=groups, sample_weight=weight, rng=as_rng(rng))
        self._take(self._calibrator)
        return self

    @property
    def names(self) -> tuple[str, ...]:
        """Signals that have a weight above 0, and so are needed."""
        self._fitted()
        return tuple(name for name, weight in self.weights_.items() if weight > 0)

    def index(self, signals: Signals | ArrayLike) -> FloatArray:
        """Weigh the signals into one score in [0, 1].

        Parameters
        ----------
        signals : mapping of str to array_like, shape (n_items,) each, or array_like, shape (n_items, n_signals)
            In the form that was fitted. Of a mapping, signals that have no weight are not needed and others are ignored.

        Returns
        -------
        ndarray of float, shape (n_items,)

        Raises
        ------
        CalibrationError
            A signal is missing, off [0, 1] or not finite; the message names it, and the row.
        StatisticsError
            Nothing has been fitted.
        """
        self._fitted()
        if isinstance(signals, Mapping):
            if missing := [name for name in self.names if name not in signals]:
                raise CalibrationError(
                    f"this calibrator needs the signals {', '.join(self.names)}, and {', '.join(missing)} "
                    f"{'is' if len(missing) == 1 else 'are'} missing"
                )
            _, table = _table({name: signals[name] for name in self.names})
            return _weighted(table, np.array([self.weights_[name] for name in self.names]))
        _, table = _table(signals)
        if table.shape[1] != len(self.weights_):
            raise CalibrationError(
                f"this calibrator takes {len(self.weights_)} signals ({', '.join(self.weights_)}), not {table.shape[1]}"
            )
        return _weighted(table, np.array(list(self.weights_.values())))

    def predict(self, signals: Signals | ArrayLike) -> FloatArray:
        """Lower median of the calibrated distribution, shape (n_items,), in levels; parameters and errors as in ``index``."""
        return self._fitted().predict(self.index(signals))

    def predict_mean(self, signals: Signals | ArrayLike) -> FloatArray:
        """Mean of the calibrated distribution, shape (n_items,); parameters and errors as in ``index``."""
        return self._fitted().predict_mean(self.index(signals))

    def predict_distribution(self, signals: Signals | ArrayLike) -> FloatArray:
        """Probability of each point of ``support_``, shape (n_items, n_support); parameters and errors as in ``index``."""
        return self._fitted().predict_distribution(self.index(signals))

    def predict_proba(self, signals: Signals | ArrayLike) -> FloatArray:
        """Probability of each level, shape (n_items, n_levels); parameters and errors as in ``index``."""
        return self._fitted().predict_proba(self.index(signals))

    def predict_at_least(self, signals: Signals | ArrayLike, level: float) -> FloatArray:
        """P(gold ≥ level), shape (n_items,); the level is an index. The rest is as in ``index``."""
        return self._fitted().predict_at_least(self.index(signals), level)

    def unfitted(self) -> Self:
        """Return a new calibrator with the same parameters and no labels."""
        return type(self)(
            n_levels=self.n_levels,
            n_subsamples=self.n_subsamples,
            judge=self.judge,
            settings=self.settings,
            label_source=self.label_source,
        )

    def check_judge(self, judge: JudgeFingerprint) -> None:
        """Raise CalibrationError, naming each difference, unless this calibrator was fitted on that judge."""
        self._fitted().check_judge(judge)

    def check_settings(self, settings: Mapping[str, str]) -> None:
        """Raise CalibrationError, naming each difference, unless the signals are made as those that were fitted."""
        self._fitted()
        own = self.settings or {}
        different = [
            f"{name}: {own.get(name)!r} and {settings.get(name)!r}"
            for name in dict.fromkeys((*own, *settings))
            if own.get(name) != settings.get(name)
        ]
        if different:
            raise CalibrationError(
                f"this calibrator was fitted on signals made otherwise ({'; '.join(different)}); fit one for these"
            )

    def to_json(self) -> str:
        """Write the calibrator as JSON (:class:`SignalCalibratorFile`)."""
        return SignalCalibratorFile(
            weights=self.weights_,
            shares=self.shares_,
            settings=dict(self.settings or {}),
            calibrator=CalibratorFile.read(self._fitted().to_json()).model_copy(update={"intervals": None}),
        ).model_dump_json()

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Read what ``to_json`` wrote; it predicts the same, to the last bit.

        Raises
        ------
        CalibrationError
            The text is no calibrator of signals; the message names the field.
        """
        try:
            file = SignalCalibratorFile.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "file"
            raise CalibrationError(f"this is no isograde calibrator of signals: {where}: {first['msg']}") from error
        inner = Calibrator.from_json(file.calibrator.model_dump_json())
        calibrator = cls(
            n_levels=inner.n_levels, judge=inner.judge, settings=file.settings or None, label_source=inner.label_source
        )
        calibrator.weights_, calibrator.shares_ = file.weights, file.shares
        calibrator._take(inner)
        return calibrator

    def _take(self, calibrator: Calibrator) -> None:
        """Stand on a fitted calibrator."""
        self._calibrator = calibrator
        self.support_, self.provenance_ = calibrator.support_, calibrator.provenance_

    def _fitted(self) -> Calibrator:
        """Return the calibrator of the index."""
        if self._calibrator is None:
            raise StatisticsError("this SignalCalibrator is not fitted; call fit or from_json first")
        return self._calibrator


def _table(signals: Signals | ArrayLike) -> tuple[Sequence[str], FloatArray]:
    """Names and columns of the signals, checked: (n_items, n_signals)."""
    if isinstance(signals, Mapping):
        names = [str(name) for name in signals]
        if not names:
            raise CalibrationError("there is no signal; give at least one")
        columns = [as_floats(column, f"signal {name}") for name, column in zip(names, signals.values(), strict=True)]
        for name, column in zip(names, columns, strict=True):
            if column.shape != columns[0].shape or column.ndim != 1:
                raise CalibrationError(
                    f"signal {name} has shape {column.shape} and {names[0]} has {columns[0].shape}; give one value an item"
                )
        table = np.column_stack(columns)
    else:
        table = as_floats(signals, "signals")
        if table.ndim != 2 or not table.shape[1]:
            raise CalibrationError(f"signals must have shape (n_items, n_signals), not {table.shape}; or name them in a mapping")
        names = [str(i) for i in range(table.shape[1])]
    off = (table < -RANGE_TOLERANCE) | (table > 1 + RANGE_TOLERANCE)
    if off.any():
        row, column_number = np.argwhere(off)[0].tolist()
        raise CalibrationError(
            f"row {row}: signal {names[column_number]} is {table[row, column_number]:g}; signals lie in 0 … 1, so rescale it"
        )
    return names, np.clip(table, 0, 1)


def _weighted(table: FloatArray, weights: FloatArray) -> FloatArray:
    """Σ weight × signal; rounding is kept from leaving [0, 1]."""
    index: FloatArray = np.clip(table @ weights, 0, 1)
    return index
