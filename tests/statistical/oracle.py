"""The smallest sets of levels that anybody could give who knew how gold falls at every score of a simulated judge."""

from __future__ import annotations

import numpy as np

from statistical.simulated import LEVELS, simulate

N_DRAWN = 400_000
N_BINS = 400


def conditional(judge, rng, **setting):
    """Gold's distribution in narrow bins of the judge's expected level, and the share of items in each."""
    drawn = simulate(judge, N_DRAWN, rng, **setting)
    score = drawn.probabilities @ LEVELS
    edges = np.unique(np.quantile(score, np.linspace(0, 1, N_BINS + 1)))
    code = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, len(edges) - 1)
    table = np.zeros((len(edges), len(LEVELS)))
    np.add.at(table, (code, drawn.gold.astype(int)), 1)
    table = table[table.sum(axis=1) > 0]
    return table / table.sum(axis=1, keepdims=True), table.sum(axis=1) / table.sum()


def oracle_sizes(confidence, judge, rng, **setting):
    """Mean levels in the smallest run of levels that holds gold often enough on every item, and on average over items."""
    table, share = conditional(judge, rng, **setting)
    runs = [(low, high) for low in range(5) for high in range(low, 5)]
    mass = np.array([table[:, low : high + 1].sum(axis=1) for low, high in runs])
    length = np.array([high - low + 1 for low, high in runs])[:, np.newaxis]
    every = np.where(mass >= confidence, length, 9).min(axis=0) @ share
    # On average: for a price per level the best run of each bin; the price at which coverage is the one stated.
    free = np.vstack([np.zeros(len(share)), mass])
    lengths = np.concatenate([[0], length[:, 0]])

    def best(price):
        chosen = (free - price * lengths[:, np.newaxis]).argmax(axis=0)
        return free[chosen, np.arange(len(share))] @ share, lengths[chosen] @ share

    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if best(middle)[0] >= confidence else (low, middle)
    (more, long), (less, short) = best(low), best(high)
    mixed = 0.0 if more == less else np.clip((confidence - less) / (more - less), 0, 1)
    return every, short + mixed * (long - short)
