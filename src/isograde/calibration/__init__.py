"""Fit a judge's levels to human gold labels and measure the distance.

Everything here is pure: arrays in, results out; randomness comes from an explicit ``rng``, and None is a fixed stream.
"""

from __future__ import annotations

from isograde.calibration.agreement import (
    AlternativeAnnotatorTest,
    HumanYardstick,
    RaterAdvantage,
    alternative_annotator_test,
    human_yardstick,
    krippendorff_alpha,
    quadratic_weighted_kappa,
)
from isograde.calibration.bounded import bounded_mean_interval
from isograde.calibration.calibrator import Calibrator, level_probabilities
from isograde.calibration.comparison import MeanComparison, compare_judged, compare_means
from isograde.calibration.conformal import PredictionInterval
from isograde.calibration.coverage import CrossIntervals, cross_intervals
from isograde.calibration.crossfit import CrossFit, Gain, Signal, cross_fit, signal
from isograde.calibration.estimation import MeanEstimate, MeanInterval, estimate_mean, estimate_pass_rate
from isograde.calibration.habits import Habit, habit
from isograde.calibration.isotonic import IsotonicCalibrator, IsotonicDistribution, fit_idr
from isograde.calibration.metrics import (
    Figure,
    bias,
    bootstrap_figure,
    exact_agreement,
    kendall_tau_b,
    level_counts,
    mae,
    rmse,
    spearman,
    within_one,
)
from isograde.calibration.provenance import CalibratorFile, JudgeFingerprint, PoolWeights, Provenance, check_same_judge
from isograde.calibration.resampling import Interval, MeanLimit, bootstrap, bootstrap_mean, grouped_folds, mean_limit
from isograde.calibration.scoring import (
    Decomposition,
    ReliabilityCurve,
    ThresholdFigures,
    corp,
    crps,
    crps_values,
    reliability_curve,
    rps,
    rps_values,
    threshold_figures,
)
from isograde.calibration.signals import SignalCalibrator, SignalCalibratorFile

__all__ = [
    "AlternativeAnnotatorTest",
    "Calibrator",
    "CalibratorFile",
    "CrossFit",
    "CrossIntervals",
    "Decomposition",
    "Figure",
    "Gain",
    "Habit",
    "HumanYardstick",
    "Interval",
    "IsotonicCalibrator",
    "IsotonicDistribution",
    "JudgeFingerprint",
    "MeanComparison",
    "MeanEstimate",
    "MeanInterval",
    "MeanLimit",
    "PoolWeights",
    "PredictionInterval",
    "Provenance",
    "RaterAdvantage",
    "ReliabilityCurve",
    "Signal",
    "SignalCalibrator",
    "SignalCalibratorFile",
    "ThresholdFigures",
    "alternative_annotator_test",
    "bias",
    "bootstrap",
    "bootstrap_figure",
    "bootstrap_mean",
    "bounded_mean_interval",
    "check_same_judge",
    "compare_judged",
    "compare_means",
    "corp",
    "cross_fit",
    "cross_intervals",
    "crps",
    "crps_values",
    "estimate_mean",
    "estimate_pass_rate",
    "exact_agreement",
    "fit_idr",
    "grouped_folds",
    "habit",
    "human_yardstick",
    "kendall_tau_b",
    "krippendorff_alpha",
    "level_counts",
    "level_probabilities",
    "mae",
    "mean_limit",
    "quadratic_weighted_kappa",
    "reliability_curve",
    "rmse",
    "rps",
    "rps_values",
    "signal",
    "spearman",
    "threshold_figures",
    "within_one",
]
