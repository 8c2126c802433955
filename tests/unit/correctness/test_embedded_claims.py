"""Answer correctness by the embedded judge, on its real weights, without a server or a key."""

import pytest

from isograde import Judge
from isograde.backends.embeddings_local import LocalEmbeddings
from isograde.correctness import AnswerCorrectness
from isograde.correctness.verdicts import SentenceVerdicts, _nearest, claim_judge
from servers.scripted import FixedEmbeddings

SAVINGS = {
    "question": "What are the terms of the savings account?",
    "answer": "The minimum balance is ₹10,000 for urban branches. The penalty fee is ₹400 per month. "
    "Internet banking is available at no cost. The interest rate is 3.5% per annum.",
    "ground_truth": "The minimum balance is ₹10,000 for urban branches. The interest rate is 3.5% per annum. "
    "The non-maintenance fee is ₹350 + taxes. The passbook is issued free of charge.",
}

pytestmark = pytest.mark.embedded


@pytest.fixture(scope="module")
def metric():
    with AnswerCorrectness(Judge(), FixedEmbeddings(0.72)) as mine:
        yield mine


def test_the_savings_account(metric):
    result = metric.score(SAVINGS)
    counts = result.counts
    assert (counts.tp_response, counts.fp, counts.tp_reference, counts.fn) == (2, 2, 2, 2)
    assert result.value == pytest.approx(0.555)
    assert result.method["claims"] == "sentences"
    assert "seven verdicts of ten" in result.caveat
    used = result.usage_by_part["verdicts"]
    assert used.cached_tokens > used.input_tokens / 2  # the rubric, the question and the sentence are computed once


@pytest.mark.parametrize(
    ("question", "answer", "reference", "f"),
    [
        ("Who founded SpaceX?", "SpaceX was founded by Nikola Tesla", "SpaceX was founded by Elon Musk", 0),
        ("What is SpaceX?", "It is an American aerospace company", "SpaceX is an American aerospace company", 1),
        ("Is the passbook free?", "Yes.", "Yes, it is free of charge.", 1),
        ("Is the passbook free?", "No.", "Yes, it is free of charge.", 0),
        ("न्यूनतम शेष राशि?", "न्यूनतम शेष राशि ₹10,000 है। पासबुक मुफ्त है।", "न्यूनतम शेष राशि ₹10,000 है। ब्याज दर 3.5% है।", 0.5),
        ("ما هو الحد الأدنى؟", "الحد الأدنى هو 10٬000 ريال. الدفتر مجاني.", "الحد الأدنى هو 10٬000 ريال. الفائدة ٣٫٥٪.", 0.5),
        ("最低残高は?", "最低残高は10,000円です。通帳は無料です。", "最低残高は10,000円です。金利は3.5%です。", 0.5),
        (
            "Jakie saldo?",
            "Saldo wynosi 10\u2009000 zł. Książeczka jest darmowa.",
            "Saldo wynosi 10 000 zł. Odsetki to 3,5%.",
            0.5,
        ),
        ("Prices?", "| Item | Price |\n|---|---|\n| Tea | 3.50 € |\n| Cake | 9 € |", "- Tea: 3.50 €\n- Coffee: 4 €", 0.5),
    ],
)
def test_short_answers_in_several_languages_and_shapes(metric, question, answer, reference, f):
    assert metric.score(question=question, answer=answer, ground_truth=reference).f_beta == f


def test_what_the_embedded_judge_is_made_of():
    with AnswerCorrectness() as metric:  # nothing is loaded yet
        assert isinstance(metric.embeddings, LocalEmbeddings)
        assert isinstance(claim_judge(metric.judge), SentenceVerdicts)
        assert metric.concurrency == 1


def test_only_the_nearest_sentences_of_a_long_text_are_asked():
    others = [f"Sentence number {i} is about something else." for i in range(20)]
    assert "The fee is ₹350." in _nearest("The fee is ₹400.", [*others, "The fee is ₹350."])
    assert len(_nearest("The fee is ₹400.", others)) == 4
    assert _nearest("a", ["b", "c"]) == {"b", "c"}
