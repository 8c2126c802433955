"""Any set of labels reads to the same scale; any file is a rubric or an error of ours."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from isograde import Level, LevelDistribution, Rubric, RubricError, load_rubric
from isograde.records import verdict


def rubric(labels, **more):
    levels = [Level(label=label, description="d") for label in labels]
    return Rubric(
        name="r",
        description="d",
        fields={"output": "answer"},
        instructions="i",
        item="{output}",
        blank_output="ask",
        **more,
        levels=levels,
    )


@given(st.lists(st.floats(0, 1), min_size=2, max_size=10).filter(lambda p: sum(p) > 0.01))
def test_every_label_set_normalises_to_the_unit_interval(weights):
    n = len(weights)
    p = tuple(w / sum(weights) for w in weights)
    digits, letters = [str(i) for i in range(n)], [chr(65 + i) for i in range(n)]
    from_one = [str(i + 1) for i in range(n)] if n < 10 else digits
    mean = sum(i * q for i, q in enumerate(p)) / (n - 1)
    for labels in (digits, letters, from_one):
        seen = LevelDistribution(labels=tuple(labels), probabilities=p, observed_mass=1.0)
        figures = verdict(seen, rubric(labels))
        assert figures["score"] == pytest.approx(mean, abs=1e-9)
        assert 0 <= figures["score"] <= 1
        assert 0 <= figures["confidence"] <= 1
        assert p[figures["level"]] == max(p)
        assert figures["level"] == p.index(max(p))  # the lowest on ties
        assert list(figures["probabilities"]) == labels


plain_yaml = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from([*Rubric.model_fields, "label", "credit", "x"]), inner, max_size=8)
    ),
    max_leaves=30,
)


@given(plain_yaml | st.binary(max_size=60))
def test_any_file_is_a_rubric_or_one_line_that_names_it(tmp_path_factory, content):
    path = tmp_path_factory.mktemp("rubric") / "r.yaml"
    path.write_bytes(content if isinstance(content, bytes) else yaml.safe_dump(content).encode())
    try:
        load_rubric(path)
    except RubricError as error:
        assert str(path) in str(error)
        assert "\n" not in str(error)
