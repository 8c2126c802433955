"""Simulated judges and raters for tests and tables: one latent quality an item, cut into gold levels 0–4 and seen by a judge.

``simulate(judge, n, rng, clustered=…, skewed=…, noisy=…)`` gives the level probabilities, gold and groups of n items drawn from
a population whose mean gold level and pass rate are known exactly (``population_mean``, ``population_pass_rate``).

Judges, all with five levels:

- informative: sees the quality with noise of 0.5 standard deviations;
- biased: as informative, 1.2 levels too lenient at the bottom;
- compressed: as informative, keeps within 1.8–2.6;
- constant: says the same of every item.

``clustered``: groups of four that share 30 % of the variance of quality. ``skewed``: 90 % of gold at level 4. ``noisy``: gold is
one rater who sees the quality with noise of 0.7 standard deviations.

Import it as ``from statistical.simulated import simulate``; tests/conftest.py puts tests on the path.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

LEVELS = np.arange(5)
JUDGES = ("informative", "biased", "compressed", "constant")
EVEN = np.array([0.2, 0.2, 0.2, 0.2, 0.2])
SKEWED = np.array([0.01, 0.02, 0.03, 0.04, 0.90])
CLUSTER_SIZE = 4
CLUSTER_SHARE = 0.3  # of the variance of quality that the items of a group share
JUDGE_NOISE = 0.5
RATER_NOISE = 0.7
SOFTNESS = 0.6  # standard deviation, in levels, of a judge's own distribution about the level it has in mind
PASS_LEVEL = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """Items drawn from a population."""

    probabilities: NDArray[np.float64]  # (n, 5)
    gold: NDArray[np.float64]  # (n,), whole levels 0–4
    groups: NDArray[np.intp]  # (n,), each its own unless clustered


def shares(*, skewed: bool) -> NDArray[np.float64]:
    """Share of the population at each gold level, shape (5,)."""
    return SKEWED if skewed else EVEN


def population_mean(*, skewed: bool) -> float:
    """Mean gold level of the population."""
    return float(shares(skewed=skewed) @ LEVELS)


def population_pass_rate(*, skewed: bool) -> float:
    """Share of the population with gold of at least level 3."""
    return float(shares(skewed=skewed)[PASS_LEVEL:].sum())


def group_codes(n: int, *, clustered: bool) -> NDArray[np.intp]:
    """Groups of four neighbours, or each item its own."""
    return np.arange(n) // (CLUSTER_SIZE if clustered else 1)


def latent(n: int, groups: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.float64]:
    """Quality of n items, standard normal, partly shared within a group."""
    share = CLUSTER_SHARE if len(np.unique(groups)) < n else 0.0
    own = np.sqrt(1 - share) * rng.normal(size=n)
    return own + np.sqrt(share) * rng.normal(size=int(groups.max(initial=0)) + 1)[groups]


def gold_levels(
    quality: NDArray[np.float64], rng: np.random.Generator, *, skewed: bool = False, noisy: bool = False
) -> NDArray[np.float64]:
    """Cut quality into levels; a noisy rater's quality is rescaled, so that the levels keep their shares."""
    if noisy:
        quality = (quality + RATER_NOISE * rng.normal(size=len(quality))) / np.hypot(1, RATER_NOISE)
    cuts = ndtri(np.cumsum(shares(skewed=skewed))[:-1])
    return np.searchsorted(cuts, quality).astype(np.float64)


def judged(
    quality: NDArray[np.float64],
    judge: str,
    rng: np.random.Generator,
    *,
    skewed: bool = False,
    noise: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Level probabilities (n, 5) that a judge gives; ``noise`` (n,), standard normal, where two judgements share theirs."""
    if judge == "constant":
        level = np.full(len(quality), 2.3)
    else:
        noise = rng.normal(size=len(quality)) if noise is None else noise
        seen = (quality + JUDGE_NOISE * noise) / np.hypot(1, JUDGE_NOISE)
        level = np.clip((3.6 if skewed else 2.0) + 1.4 * seen, 0, 4)
        level = {"informative": level, "biased": 1.2 + 0.7 * level, "compressed": 1.8 + 0.2 * level}[judge]
    weight = np.exp(-0.5 * ((LEVELS - level[:, np.newaxis]) / SOFTNESS) ** 2)
    return weight / weight.sum(axis=1, keepdims=True)


def simulate(
    judge: str, n: int, rng: np.random.Generator, *, clustered: bool = False, skewed: bool = False, noisy: bool = False
) -> Simulated:
    """Draw n items with their gold levels and a judge's level probabilities."""
    groups = group_codes(n, clustered=clustered)
    quality = latent(n, groups, rng)
    gold = gold_levels(quality, rng, skewed=skewed, noisy=noisy)
    return Simulated(probabilities=judged(quality, judge, rng, skewed=skewed), gold=gold, groups=groups)


def simulate_pair(
    judge: str,
    n: int,
    rng: np.random.Generator,
    *,
    shift: float = 0.0,
    favour: float = 0.0,
    clustered: bool = False,
    skewed: bool = False,
    noisy: bool = False,
) -> tuple[Simulated, Simulated]:
    """Draw two systems' answers to the same n inputs; quality correlates by 0.6, and B's is higher by ``shift``.

    With a shift of 0 both have the same mean gold level, so a test's size can be counted. The judge's noise correlates by 0.5; it
    sees B's quality higher by ``favour``.
    """
    groups = group_codes(n, clustered=clustered)
    shared, noise = latent(n, groups, rng), rng.normal(size=n)
    pair = []
    for moved, seen_higher in ((0.0, 0.0), (shift, favour)):
        quality = np.sqrt(0.6) * shared + np.sqrt(0.4) * latent(n, groups, rng) + moved
        gold = gold_levels(quality, rng, skewed=skewed, noisy=noisy)
        seen = np.sqrt(0.5) * noise + np.sqrt(0.5) * rng.normal(size=n)
        probabilities = judged(quality + seen_higher, judge, rng, skewed=skewed, noise=seen)
        pair.append(Simulated(probabilities=probabilities, gold=gold, groups=groups))
    return pair[0], pair[1]
