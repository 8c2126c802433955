"""Rubric files: what is shipped, and what each broken rule says."""

import pytest
import yaml

from isograde import LevelDistribution, RubricError, load_rubric
from isograde.records import verdict
from isograde.rubric import rubric_names

GOOD = {
    "name": "mine",
    "description": "d",
    "fields": ["output"],
    "instructions": "Grade it.",
    "levels": [{"label": 1, "description": "bad"}, {"label": 2, "description": "good"}],
    "item": "{output}",
    "blank_output": "fail",
}


def written(tmp_path, **changes):
    path = tmp_path / "mine.yaml"
    content = {key: value for key, value in {**GOOD, **changes}.items() if value is not ...}
    path.write_text(yaml.safe_dump(content), encoding="utf-8")
    return path


def test_shipped_rubrics_are_the_four():
    assert rubric_names() == ["answer_correctness", "factuality", "faithfulness", "relevance"]
    for name in rubric_names():
        rubric = load_rubric(name)
        assert rubric.name == name
        assert rubric.scale == ("choice" if name == "factuality" else "ordered")
    assert load_rubric("answer_correctness").labels == ("0", "1", "2", "3", "4")
    assert "context" in load_rubric("faithfulness").fields


def test_own_rubric_with_integer_labels(tmp_path):
    rubric = load_rubric(written(tmp_path))
    assert rubric.labels == ("1", "2")
    assert rubric.values == (1.0, 2.0)
    assert rubric.fields == {"output": "output"}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "colour: unknown key"),
        ({"levels": [{"label": "1", "description": "a"}, {"label": "1", "description": "b"}]}, "label '1' stands twice"),
        ({"levels": [{"label": "1", "description": "a"}, {"label": "10", "description": "b"}]}, "label '1' begins label '10'"),
        ({"levels": [{"label": "1", "description": "a"}]}, "1 level(s); a rubric has 2 to 10"),
        ({"levels": [{"label": chr(65 + i), "description": "a"} for i in range(11)]}, "11 level(s)"),
        ({"levels": [{"label": True, "description": "a"}, {"label": "n", "description": "b"}]}, "put it in quotes"),
        ({"levels": [{"label": "a b", "description": "a"}, {"label": "n", "description": "b"}]}, "holds blanks"),
        ({"fields": ["output", "input"]}, "field 'input' is declared but the item text never uses it"),
        ({"item": "{{output}}"}, "field 'output' is declared but the item text never uses it"),
        ({"fields": []}, "at least one field"),
        ({"fields": {"output": "a", "input": "a"}, "item": "{output}{input}"}, "two fields share one tag"),
        ({"instructions": ...}, "instructions: Field required"),
        ({"blank_output": "zero"}, "blank_output"),
        ({"pass_at": 3}, "pass_at"),
        ({"scale": "choice", "levels": [{"label": "A", "description": "a", "credit": 1}, {"label": "B", "description": "b"}]}, "not for B"),
        ({"levels": [{"label": "A", "description": "a", "credit": 1}, {"label": "B", "description": "b", "credit": 0}]}, "belongs to a choice"),
        ({"name": "My Rubric"}, "lower-case letters"),
    ],
)  # fmt: skip
def test_a_broken_rule_is_named_in_one_line(tmp_path, changes, said):
    path = written(tmp_path, **changes)
    with pytest.raises(RubricError) as caught:
        load_rubric(path)
    assert said in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"a: [1", "line"), (b"- 1", "must be a mapping"), (b"", "must be a mapping"), (b"\xff\xfe\x00", "mine.yaml"),
     (b"a: !!python/object/apply:os.system [ls]", "could not determine a constructor")],
)  # fmt: skip
def test_a_file_that_is_no_rubric(tmp_path, content, said):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(RubricError, match=said):
        load_rubric(path)


def test_unknown_names_and_missing_files(tmp_path):
    with pytest.raises(RubricError, match="no rubric named 'correctness'; shipped are answer_correctness"):
        load_rubric("correctness")
    with pytest.raises(RubricError, match="No such file"):
        load_rubric(tmp_path / "none.yaml")
    with pytest.raises(RubricError, match="Is a directory"):
        load_rubric(tmp_path)


def test_fingerprint_changes_with_what_is_asked_only(tmp_path):
    first = load_rubric(written(tmp_path)).fingerprint
    assert load_rubric(written(tmp_path, name="other", description="e", pass_at=0.5)).fingerprint == first
    assert load_rubric(written(tmp_path, instructions="Grade it!")).fingerprint != first
    assert load_rubric(written(tmp_path, item="Answer: {output}")).fingerprint != first


def test_a_changed_copy_has_its_own_fingerprint():
    rubric = load_rubric("relevance")
    before = rubric.fingerprint
    assert rubric.model_copy(update={"instructions": "Other."}).fingerprint != before
    assert rubric.model_copy().fingerprint == before


def figures(rubric, *p):
    return verdict(LevelDistribution(labels=rubric.labels, probabilities=p, observed_mass=1.0), rubric)


def test_a_grade_by_hand():
    seen = figures(load_rubric("answer_correctness"), 0.02, 0.03, 0.08, 0.25, 0.62)
    # expected level 0·.02 + 1·.03 + 2·.08 + 3·.25 + 4·.62 = 3.42
    assert seen["score"] == pytest.approx(3.42 / 4)
    assert seen["label"] == "3.4 / 4"
    assert seen["level"] == 4
    assert seen["passed"] is True
    # Σ p|i−4| = .08 + .09 + .16 + .25 = .58; D = (2+1+0+1+2)/5 = 1.2
    assert seen["confidence"] == pytest.approx(1 - 0.58 / 1.2)


def test_labels_of_another_scale(tmp_path):
    one_to_five = load_rubric(written(tmp_path, levels=[{"label": i, "description": "d"} for i in range(1, 6)]))
    seen = figures(one_to_five, 0.0, 0.0, 0.1, 0.6, 0.3)
    assert seen["label"] == "4.2 / 5"  # 3·.1 + 4·.6 + 5·.3
    assert seen["score"] == pytest.approx(0.8)  # (4.2 − 1) ÷ 4
    letters = load_rubric(written(tmp_path, levels=[{"label": c, "description": "d"} for c in "ABC"]))
    seen = figures(letters, 0.2, 0.2, 0.6)
    assert (seen["label"], seen["score"]) == ("C", pytest.approx(0.7))


def test_three_quarters_passes_whatever_the_last_bit():
    rubric = load_rubric("answer_correctness")
    assert figures(rubric, 0.1, 0.1, 0.1, 0.1, 0.6)["score"] == pytest.approx(0.75)
    assert figures(rubric, 0.1, 0.1, 0.1, 0.1, 0.6)["passed"] is True
    assert figures(rubric, 0.1, 0.1, 0.1, 0.102, 0.598)["passed"] is False


def test_a_choice_scores_by_its_credit():
    seen = figures(load_rubric("factuality"), 0.2, 0.0, 0.5, 0.3, 0.0)
    assert seen["label"] == "C"
    assert seen["score"] == pytest.approx(0.6)  # A .5·.2 + C 1·.5 + D 0·.3
    assert seen["confidence"] == pytest.approx(0.5)
    assert seen["passed"] is False


def test_a_choice_without_credit_has_no_score(tmp_path):
    path = written(tmp_path, scale="choice", levels=[{"label": c, "description": "d"} for c in "AB"])
    seen = figures(load_rubric(path), 0.4, 0.6)
    assert (seen["score"], seen["passed"], seen["label"]) == (None, None, "B")
