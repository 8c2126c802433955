"""What stands in HTML and Markdown: nothing that acts, and what the model holds."""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser

import pytest

from browser.reports import HOSTILE, hostile_report, hostile_run
from isograde.errors import UserError
from isograde.report import RunReport
from isograde.report.plots import shade
from isograde.report.text import clipped, in_markdown, level_name, number, visible
from isograde.report.wording import with_interval

REPORTS = {"calibration": hostile_report(), "run": hostile_run()}


class Elements(HTMLParser):
    """Collects elements, attributes and scripts."""

    def __init__(self, html):
        super().__init__()
        self.elements, self.attributes, self.script = [], [], ""
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag, attrs):
        self.elements.append(tag)
        self.attributes += [(tag, name, value) for name, value in attrs]

    def handle_data(self, data):
        if self.elements and self.lasttag == "script":
            self.script += data
        self.text += data


@pytest.fixture(params=REPORTS)
def html(request):
    return REPORTS[request.param].to_html()


def test_hostile_text_is_text(html):
    page = Elements(html)
    assert page.elements.count("script") == page.elements.count("style") == 1
    assert {"img", "iframe", "object", "embed", "base", "i", "b"}.isdisjoint(page.elements)
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for text in ("<script>window.pwned = 1</script>", '"><img src=x onerror="window.pwned = 2">', "{{ 7 * 7 }}${7*7}"):
        assert text in page.text  # shown as it was written
    for raw in ("<script>window", "<img", "<iframe", 'onerror="', "<svg/onload"):
        assert raw not in html
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069]", html)


def test_nothing_is_asked_for_from_outside(html):
    page = Elements(html)
    for tag, name, value in page.attributes:
        if name in {"src", "href", "xlink:href", "action", "formaction", "poster", "data"}:
            assert value == "data:," or value.startswith("#"), (tag, name, value)
    style = html[html.index("<style>") : html.index("</style>")]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(value for tag, name, value in page.attributes if tag == "meta" and name == "content" and "default-src" in value)
    assert policy.startswith("default-src 'none'; ")
    assert "script-src 'sha256-" in policy


def test_ids_are_unique(html):
    ids = re.findall(r' id="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    referred = re.findall(r'(?:href="|url\()#([\w-]+)', html)
    assert set(referred) <= set(ids)


@pytest.mark.parametrize("name", REPORTS)
def test_markdown_holds_no_markup(name):
    text = REPORTS[name].to_markdown()
    assert "<" not in text.replace("&lt;", "")
    assert "://" not in text
    assert not re.search(r"(?<!\\)\]\(", text)
    tables = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert tables
    for table in tables:
        cells = {len(re.findall(r"(?<!\\)\|", line)) for line in table}
        assert len(cells) == 1, table[0]
    order = [text.index(part) for part in ("trusted", "calibration help", "Where is it wrong")] if name == "calibration" else [0]
    assert order == sorted(order)


def test_sections_stand_in_the_order_of_the_questions():
    html = REPORTS["calibration"].to_html()
    asked = ["Can this judge be trusted", "How much does calibration help?", "Where is it wrong?", "How this was measured"]
    places = [html.index(f"{question}") for question in asked]
    assert places == sorted(places)
    assert html.index(REPORTS["calibration"].trust_answer.sentence) < places[1]


def test_figures_shown_are_those_of_the_model():
    report = REPORTS["calibration"]
    page = Elements(report.to_html())
    mae = report.point_figures[0]
    for estimate in (mae.calibrated, mae.expected_level, mae.constant):
        assert f"{estimate.value:.2f}" in page.text
        assert f"{estimate.low:.2f} to {estimate.high:.2f}" in page.text
    assert report.to_markdown().count(with_interval(mae.calibrated)) >= 2


def test_run_report_round_trip():
    report = REPORTS["run"]
    again = RunReport.from_json(report.to_json())
    assert again == report
    assert again.to_html() == report.to_html()


@pytest.mark.parametrize("missing", ["jinja2", "matplotlib"])
def test_a_missing_extra_is_named(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(UserError, match=rf'needs {missing}: pip install "isograde\[report\]"'):
        REPORTS["run"].to_html()


def test_visible():
    assert visible("tab\tline\r\nnext\u2028end") == "tab\tline\nnext\nend"
    assert visible("\u202eright\x07\ud800") == "\ufffdright\ufffd\ufffd"
    assert visible("👩\u200d🔬 می\u200cخواهم") == "👩\u200d🔬 می\u200cخواهم"  # joiners spell
    assert all(visible(visible(text)) == visible(text) for text in HOSTILE)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("a | b", "a \\| b"),
        ("# no heading\n- no list", "\\# no heading - no list"),
        ("[x](http://a.b)", "\\[x\\](http&#58;//a.b)"),
        ("@someone www.a.b", "&#64;someone www&#46;a.b"),
        ("`code` *b* _i_ ~s~ $m$", "\\`code\\` \\*b\\* \\_i\\_ \\~s\\~ \\$m\\$"),
        ("&lt;", "&amp;lt;"),
    ],
)
def test_in_markdown(text, safe):
    assert in_markdown(text) == safe


def test_numbers_for_people():
    assert number(-0.004) == "0.00"
    assert number(1234.5, 1) == "1,234.5"
    assert clipped("abc", 3) == "abc"
    assert level_name(1.5, ("1", "2", "5")) == "3.50"  # between 2 and 5
    assert level_name(2, ("low", "mid", "high")) == "high"


def test_shade():
    assert shade(0, 10) == ""
    assert shade(10, 10) == "background:#fde725;color:#000"
    assert shade(1, 100) == "background:#482475;color:#fff"
