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
from isograde.calibration.calibrator import Calibrator, level_probabilities
from isograde.calibration.crossfit import CrossFit, Gain, Signal, cross_fit, signal
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

__all__ = [
    "AlternativeAnnotatorTest",
    "Calibrator",
    "CalibratorFile",
    "CrossFit",
    "Decomposition",
    "Figure",
    "Gain",
    "HumanYardstick",
    "Interval",
    "IsotonicCalibrator",
    "IsotonicDistribution",
    "JudgeFingerprint",
    "MeanLimit",
    "PoolWeights",
    "Provenance",
    "RaterAdvantage",
    "ReliabilityCurve",
    "Signal",
    "ThresholdFigures",
    "alternative_annotator_test",
    "bias",
    "bootstrap",
    "bootstrap_figure",
    "bootstrap_mean",
    "check_same_judge",
    "corp",
    "cross_fit",
    "crps",
    "crps_values",
    "exact_agreement",
    "fit_idr",
    "grouped_folds",
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
