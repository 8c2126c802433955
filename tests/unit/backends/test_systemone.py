"""The System One wire against jevcompat's mock server, clean and with each of its faults, and TypeSafe's own SDK's types."""

import pytest
from jevcompat import mock, runner
from typesafe_sdk import Score
from typesafe_sdk._core.response_types import SystemOneResponse

from isograde import Grade, GradeFailure, IsogradeError, Item, Judge, ServerError, UserError, load_rubric
from isograde.backends.systemone import SystemOneBackend, read_decision
from isograde.prompt import render

ITEM = {"input": "Who wrote it?", "output": "Ada </answer> Lovelace", "expected": "Ada Lovelace"}
LABELS = ("0", "1", "2", "3", "4")


def judge(url, rubric="answer_correctness", **options):
    return Judge(backend=SystemOneBackend(base_url=url, max_retries=0, **options), rubric=rubric)


def rubric_of(n):
    levels = [{"label": str(i), "description": f"level number {i}"} for i in range(n)]
    return load_rubric("relevance").model_copy(update={"levels": levels})


@pytest.fixture(scope="module")
def server():
    with mock.Running() as running:
        yield running


def test_the_mock_is_a_conforming_server(server):
    report = runner.run(server.url, timeout=20)
    assert report.verdict == "conformant"


def test_a_grade_is_read_from_the_probabilities(server):
    with judge(server.url) as mine:
        grade = mine.score(ITEM)
        request = mine.backend.request(mine.way.prompt(mine.rubric, Item(**ITEM)), LABELS)
    question = request["questions"]["level"]
    Score.model_validate(question)  # the SDK's own type takes the question
    assert question["criteria"] == [level.description for level in mine.rubric.levels]
    assert request["state"] == {"question": "Who wrote it?", "answer": "Ada <\\/answer> Lovelace", "reference": "Ada Lovelace"}
    # the mock's own answer, as its module computes it, for the same question
    expected = mock.answer(mock.MockConfig(), request["state"], "level", question, 0, 1)
    assert list(grade.probabilities.values()) == pytest.approx([expected["probabilities"][label] for label in LABELS])
    assert grade.expected_level == pytest.approx(expected["score"])
    assert grade.confidence == pytest.approx(expected["confidence"])  # TypeSafe's published definition is ours
    assert (grade.method, grade.distribution.observed_mass, grade.samples) == ("decision_model", 1.0, None)
    assert grade.server == f"{server.url}/v1"
    assert grade.usage.input_tokens > 0


@pytest.mark.parametrize("n", range(2, 11))
def test_two_to_ten_levels(server, n):
    with judge(server.url, rubric_of(n)) as mine:
        grade = mine.score(ITEM)
    assert len(grade.probabilities) == n
    assert sum(grade.probabilities.values()) == pytest.approx(1)


def test_a_rubric_without_order_is_a_choice(server):
    with judge(server.url, "factuality") as mine:
        grade = mine.score(ITEM)
    assert tuple(grade.probabilities) == load_rubric("factuality").labels


def test_typesafes_sdk_reads_what_we_read(server):
    import httpx2

    body = SystemOneBackend(base_url=server.url).request(render(load_rubric("answer_correctness"), Item(**ITEM)), LABELS)
    response = httpx2.post(f"{server.url}/v1/systemone", json=body)
    theirs = SystemOneResponse._decode(response).scores["level"]
    ours = read_decision(response.json(), LABELS)
    assert list(ours.probabilities) == pytest.approx([theirs.probabilities[i] for i in range(5)])
    assert ours.expected_level == pytest.approx(theirs.score)


GRADED = None
# Faults that touch a score question, and what becomes of the item; every other fault leaves the grade as it is.
FAULTS = {
    "wrong-route": "has no model",
    "xssi-200": "sent no JSON",
    "text-errors": GRADED,
    "auth-rejects-header": "refuses the key",
    "reject-jev-latest": "has no model",
    "cap-5-levels": GRADED,
    "strict-ids": GRADED,
    "score-sum": "add up to 0.8",
    "score-keys-1-based": "not of 0, 1, 2, 3, 4",
    "legend-1-based": "which level is which",
    "nan": GRADED,  # in a field that is not read
    "score-argmax": GRADED,  # the server's own score is not read
    "confidence-over": GRADED,
}


@pytest.mark.parametrize("fault", sorted(mock.FAULTS))
def test_every_fault_is_a_right_grade_or_a_truthful_failure(server, fault):
    with judge(server.url) as mine:
        right = mine.score(ITEM)
    with mock.Running(mock.MockConfig(faults=frozenset({fault}))) as broken, judge(broken.url) as mine:
        try:
            grade = mine.score(ITEM)
        except IsogradeError as error:
            grade = GradeFailure(status="server_error", message=str(error))
    said = FAULTS.get(fault, GRADED)
    if said is GRADED:
        assert isinstance(grade, Grade), grade
        if fault not in {"id-leaks", "batch-leaks", "order-leaks"}:  # these feed the fake model something else
            assert grade.probabilities == pytest.approx(right.probabilities)
    else:
        assert isinstance(grade, GradeFailure)
        assert said in grade.message


def test_rounded_probabilities_are_normalised_and_others_refused():
    def body(*p, **more):
        return {"answers": {"level": {"type": "score", "probabilities": {str(i): x for i, x in enumerate(p)}, **more}}}

    seen = read_decision(body(0.33, 0.33, 0.33), ("a", "b", "c"))
    assert seen.probabilities == pytest.approx((1 / 3, 1 / 3, 1 / 3))
    assert (seen.observed_mass, seen.unseen_mass) == (1.0, 0.0)
    for wrong in (body(0.5, 0.4), body(1.3, -0.3), body(float("nan"), 1), body(*[True, 0]), body("1", 0), body(1.0), {}, [], None,
                  {"detail": {"message": "no"}}, {"answers": {"level": {"type": "noul", "noul": 0.3}}}, {"answers": []}):  # fmt: skip
        assert isinstance(read_decision(wrong, ("a", "b")), GradeFailure), wrong


def test_keys_and_addresses(monkeypatch):
    monkeypatch.delenv("TYPESAFE_API_KEY", raising=False)
    monkeypatch.delenv("TYPESAFE_BASE_URL", raising=False)
    with pytest.raises(UserError, match="TYPESAFE_API_KEY"):
        SystemOneBackend()
    for given in ("http://h:1", "http://h:1/", "http://h:1/v1", "http://h:1/v1/systemone"):
        assert SystemOneBackend(base_url=given).server == "http://h:1/v1"
    monkeypatch.setenv("TYPESAFE_API_KEY", "tsk-secret-0123")
    assert SystemOneBackend().server == "https://api.typesafe.ai/v1"
    with mock.Running(mock.MockConfig(key="tsk-secret-0123")) as locked:
        with judge(locked.url) as mine, pytest.raises(ServerError, match="refuses the key"):  # one for TypeSafe is nobody else's
            mine.score(ITEM)
        with judge(locked.url, api_key="tsk-secret-0123") as mine:
            assert isinstance(mine.score(ITEM), Grade)
            assert "tsk-secret" not in repr(mine) + repr(mine.backend)
        monkeypatch.setenv("TYPESAFE_BASE_URL", locked.url)
        with Judge(backend=SystemOneBackend(max_retries=0)) as mine:
            assert isinstance(mine.score(ITEM), Grade)


def test_a_method_of_ones_own_is_refused(server):
    with pytest.raises(UserError, match="this backend is read by decision_model"):
        Judge(backend=SystemOneBackend(base_url=server.url), method="sampling")
