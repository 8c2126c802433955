"""Sentences of many languages; expected cuts are set by hand."""

import pytest

pytest.importorskip("sentencex", reason="the segmenter is part of isograde[embedded]")

from isograde.correctness.sentences import sentences


@pytest.mark.parametrize(
    "expected",
    [
        [
            "The minimum balance is ₹10,000 for urban branches.",
            "The interest rate is 3.5% per annum.",
            "The fee is ₹350 + taxes.",
        ],
        ["Dr. Smith met Mr. J. K. Rowling at 5 p.m. in the U.S. embassy, e.g. near St. James.", "See Fig. 3."],
        ["न्यूनतम शेष राशि ₹10,000 है।", "ब्याज दर 3.5% प्रति वर्ष है।", "क्या पासबुक मुफ्त है?", "डॉ. शर्मा ने कहा।"],
        ["الحد الأدنى للرصيد هو 10٬000 ريال.", "هل الفائدة ٣٫٥٪ سنويًا؟", "نعم!", "دفتر الحساب مجاني."],
        [
            "Minimalne saldo wynosi 10\u2009000 zł.",
            "Oprocentowanie to 3,5% w skali roku, tj. ok. 350 zł.",
            "Ul. Długa 5 jest krótka.",
        ],
        ["Jan Kowalski urodził się w 1970 r. w Krakowie.", "To prawda."],
        ["Die Gebühr beträgt z. B. 3,50 €.", "Dr. Müller kommt um 5 Uhr."],
        ["He said “Stop. Now!” and left.", '"Is it 3.5?" she asked.', "Version 2.0.1 is at example.com."],
        ["یہ درست ہے۔", "وہ غلط ہے۔"],
    ],
)
def test_a_paragraph_is_cut_where_its_sentences_end(expected):
    assert sentences(" ".join(expected)) == expected


@pytest.mark.parametrize(
    "expected",
    [["最低残高は10,000円です。", "金利は年3.5%です!", "はい。"], ["最低余额为1万元。", "利率是3.5%吗?", "费用为350元!"]],
)
def test_scripts_without_blanks(expected):
    assert sentences("".join(expected)) == expected


def test_lists():
    text = (
        "The steps are:\n1. Open the valve.\n2. Close the tap (see p. 5).\n\n- first item\n* second item; still second\n• third"
    )
    assert sentences(text) == [
        "The steps are: 1. Open the valve.",
        "2. Close the tap (see p. 5).",
        "first item",
        "second item; still second",
        "third",
    ]


def test_headings_and_code_fences_state_nothing():
    text = "# Loading\n\nUse this:\n```python\nimport csv\n```\n## Notes\nIt is quick.\n~~~\n#1 is the best.\n"
    assert sentences(text) == ["Use this: import csv", "It is quick.", "#1 is the best."]


def test_tables():
    assert sentences("| Item | Price |\n|---|---:|\n| Tea | 3.50 € |\n| Coffee | 4 € |") == ["Tea: 3.50 €", "Coffee: 4 €"]


def test_wrapped_lines_go_on_and_short_ones_do_not():
    assert sentences("The interest rate that the bank pays on this account\nis 3.5% per annum.") == [
        "The interest rate that the bank pays on this account is 3.5% per annum."
    ]
    assert sentences("tea\ncoffee") == ["tea", "coffee"]


def test_yes_goes_with_what_follows():
    assert sentences("Yes. The passbook is free.") == ["Yes. The passbook is free."]
    assert sentences("Yes.") == ["Yes."]
    assert sentences("はい。") == ["はい。"]


@pytest.mark.parametrize("text", ["", " \n\u200b", "---\n***", "…", "🙂", "| |\n|---|"])
def test_what_states_nothing_has_none(text):
    assert sentences(text) == []
