"""Small reports that the unit tests and the browser tests share."""

from __future__ import annotations

import numpy as np

from isograde.datasets import Row
from isograde.records import Grade, GradeFailure, Item, LevelDistribution
from isograde.report import calibration_report, run_report

LABELS = tuple("01234")
HOSTILE = (
    "</p></script><script>window.pwned = 1</script>",
    '"><img src=x onerror="window.pwned = 2">',
    "{{ 7 * 7 }}${7*7}{% raw %}",
    "javascript:alert(1) [click](javascript:alert(1)) | a | b |",
    '=HYPERLINK("http://example.com")\x1b[31m\u202egnp.exe\x00\u2066',
    "</style><style>body{display:none}</style><!-- ]]> &lt;b&gt;",
    "<svg/onload=window.pwned=3><iframe src=http://example.com>",
)


def grade(probabilities, item=None, *, labels=LABELS, rubric="answer_correctness", **changes):
    """Give a grade with these level probabilities."""
    p = tuple(float(each) for each in probabilities)
    score = min(1.0, sum(i * q for i, q in enumerate(p)) / (len(p) - 1))
    made = {
        "score": score,
        "label": f"{score * (len(p) - 1):.1f} / {labels[-1]}",
        "level": p.index(max(p)),
        "probabilities": dict(zip(labels, p, strict=True)),
        "confidence": max(p),
        "passed": score >= 0.75,
        "distribution": LevelDistribution(labels=tuple(labels), probabilities=p, observed_mass=1.0),
        "rubric": rubric,
        "rubric_fingerprint": "a" * 16,
        "prompt_fingerprint": "b" * 16,
        "model": "a-judge",
        "method": "answer_token",
        "item": item or Item(),
    }
    return Grade(**(made | changes))


def one_hot(level, item=None, **changes):
    """Give a grade that is sure of a level."""
    return grade([float(i == level) for i in range(5)], item, **changes)


def hostile_report(n=60):
    """Give a report on a fair judge whose every text is hostile."""
    rng = np.random.default_rng(0)
    gold = [float(i % 5) for i in range(n)]
    grades = []
    for i, level in enumerate(gold):
        seen = np.clip(level + rng.normal(0, 1.2), 0, 4)
        weights = np.exp(-((np.arange(5) - seen) ** 2))
        text = HOSTILE[i % len(HOSTILE)]
        item = Item(
            id=f"{i} {text}",
            group=f"g{i} {text}",
            input=f"Question {i}: {text}",
            output=f"Answer {i}: {'alpha' if i % 2 else 'beta'} {text} {'long ' * 400}",
            expected=(text, "another"),
            context=text,
            metadata={"<b>system</b>": f"<i>{'one' if i % 2 else 'two'}</i>", "'\"quoted": '"' if i % 3 else "'", "length": i},
        )
        failed = GradeFailure(status="timeout", message=text, item=item)
        grades.append(failed if i % 20 == 19 else grade(weights / weights.sum(), item, model=f"model {HOSTILE[0]}"))
    raters = [(level, min(4.0, level + i % 2), None) for i, level in enumerate(gold)]
    return calibration_report(grades, gold, raters=raters, label_source=HOSTILE[1], title=f"Report {HOSTILE[0]}", n_resamples=200)


def hostile_run():
    """Give a run report whose every text is hostile."""
    rows = []
    for i in range(40):
        text = HOSTILE[i % len(HOSTILE)]
        item = Item(id=f"{i} {text}", input=text, output=text, group=f"g{i % 4}", metadata={"<b>system</b>": text[:30]})
        rubric = "answer_correctness"
        failed = GradeFailure(status="server_error", message=text, item=item, rubric=rubric)
        rows.append((Row(item=item, index=i), failed if i % 10 == 9 else one_hot(i % 5, item, rubric=rubric)))
    return run_report(rows, threshold=0.5, title=HOSTILE[1])
