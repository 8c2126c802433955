"""Made the numbers in test_ppi.py; run with ppi-python 0.2.3 (Angelopoulos, Duchi & Zrnic's own code): python ppi_reference.py."""

import numpy as np


def draw():
    """300 labelled and 3,000 unlabelled predictions, and the labels."""
    rng = np.random.default_rng(20231102)
    n, more = 300, 3000
    predicted = rng.uniform(0, 4, n + more)
    gold = np.clip(np.round(predicted + rng.normal(0, 0.8, n + more)), 0, 4)[:n]
    return gold, predicted


if __name__ == "__main__":
    from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

    gold, predicted = draw()
    n = len(gold)
    print(ppi_mean_pointestimate(gold, predicted[:n], predicted[n:]), ppi_mean_ci(gold, predicted[:n], predicted[n:], alpha=0.05))
