"""RAGAS 0.4.3's own answer correctness, driven by a script (tests/reference/ragas), against ours with generated verdicts over HTTP."""

import json
from pathlib import Path

import pytest

from isograde import Judge, UserError
from isograde.backends.vectors import Embedded, as_vector
from isograde.correctness import AnswerCorrectness, CorrectnessFailure
from servers.scripted import ScriptedModel, fenced, kind, written
from servers.stub import StubServer

DATA = json.loads((Path(__file__).parent / "ragas" / "ragas_0_4_3.json").read_text(encoding="utf-8"))
CASES = DATA["cases"]
SAME = [case for case in CASES if case["difference"] in (None, "recall_over")]
OTHER = {case["name"]: case for case in CASES if case["difference"] is not None}


class Vectors:
    """The case's own vectors."""

    name = "reference"

    def __init__(self, case):
        self.vectors = {case["response"]: case["response_vector"], case["reference"]: case["reference_vector"]}

    async def embed(self, texts):
        return Embedded(vectors=tuple(as_vector(self.vectors[text]) for text in texts))

    async def aclose(self):
        pass


def measured(case, **options):
    """Ask our metric about a case, with a model that says what RAGAS's was told to say."""
    statements = {case["response"]: case["response_statements"], case["reference"]: case["reference_statements"]}

    def answer(request):
        if kind(request) == "claims":
            return written(json.dumps({"statements": statements[fenced(request, "text")]}))
        if kind(request) == "sorting":
            sorting = {
                side: [{"statement": text, "reason": "scripted"} for text in texts]
                for side, texts in case["classification"].items()
            }
            return written(json.dumps(sorting), prompt_tokens=10_000)
        return ScriptedModel()(request)

    with StubServer(answer) as server, Judge(model="stub-1", base_url=server.base_url, max_retries=0) as judge:
        embeddings = Vectors(case)
        metric = AnswerCorrectness(judge, embeddings, case["weights"], case["beta"], **{"verdicts": "generated", **options})
        return metric.score(user_input=case["user_input"], response=case["response"], reference=case["reference"])


@pytest.mark.parametrize("case", SAME, ids=[case["name"] for case in SAME])
def test_the_same_where_both_define_the_score(case):
    result, theirs = measured(case), case["ragas"]
    assert result.value == pytest.approx(theirs["score"], abs=1e-9)
    assert result.f_beta == pytest.approx(theirs["f_beta"], abs=1e-9)
    assert result.similarity == pytest.approx(theirs["similarity"], abs=1e-9)
    for name in ("precision", "recall"):
        if theirs[name] is not None:
            assert getattr(result, name) == pytest.approx(theirs[name], abs=1e-9)


def test_there_are_enough_cases():
    assert len([case for case in CASES if case["difference"] is None]) >= 60
    assert {case["difference"] for case in CASES} == {
        None, "one_side_empty", "both_empty", "negative_cosine", "zero_vector", "recall_over", "unsorted", "sorted_twice", "made_up",
    }  # fmt: skip


@pytest.mark.parametrize("name", [name for name, case in OTHER.items() if case["difference"] == "one_side_empty"])
def test_statements_on_one_side_only_have_f_beta_0(name):
    result = measured(OTHER[name])
    assert OTHER[name]["ragas"]["f_beta"] == 1.0
    assert (result.f_beta, result.value) == (0.0, pytest.approx(0.25 * 0.72))


def test_no_statements_at_all_have_no_value():
    case = OTHER["no statements at all"]
    assert case["ragas"]["score"] == pytest.approx(0.93)
    assert measured(case).value is None


@pytest.mark.parametrize(
    ("name", "recall"),
    [
        ("ten restatements of one of five", 1 / 5),
        ("one sentence that covers five facts", 1.0),
        ("nothing true said but all covered", 1.0),
    ],
)
def test_recall_over_the_reference(name, recall):
    case = OTHER[name]
    assert measured(case, recall_over="reference").recall == pytest.approx(recall)


@pytest.mark.parametrize(
    "name", [name for name, case in OTHER.items() if case["difference"] in {"unsorted", "sorted_twice", "made_up"}]
)
def test_a_classification_that_does_not_add_up_is_no_score(name):
    result = measured(OTHER[name])
    assert isinstance(result, CorrectnessFailure)
    assert (result.part, result.status) == ("verdicts", "unreadable")


@pytest.mark.parametrize("name", [name for name, case in OTHER.items() if case["difference"] == "negative_cosine"])
def test_a_negative_cosine_counts_as_0(name):
    case = OTHER[name]
    result = measured(case)
    assert case["ragas"]["similarity"] < 0
    assert result.similarity == 0
    first, second = case["weights"]
    assert result.value == pytest.approx(first * result.f_beta / (first + second))


def test_a_zero_vector_is_a_failure():
    result = measured(OTHER["zero vector"])
    assert isinstance(result, CorrectnessFailure)
    assert (result.part, result.status) == ("similarity", "no_similarity")


@pytest.mark.parametrize("setting", DATA["settings"], ids=str)
def test_settings_are_refused_alike(setting):
    embeddings = Vectors(CASES[0]) if setting["embeddings"] else None
    beta = setting.get("beta", 1.0)
    with Judge(model="stub-1", base_url="http://127.0.0.1:9/v1") as judge:
        if (setting["error"] and beta != 1) or beta < 0 or (setting["error"] and "Beta" not in setting["error"]):
            with pytest.raises(UserError):
                AnswerCorrectness(judge, embeddings, setting["weights"], beta)
        else:  # a whole number is a beta too, which RAGAS refuses
            AnswerCorrectness(judge, embeddings, setting["weights"], beta)
