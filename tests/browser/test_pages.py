"""Reports in headless Chromium: they render, filter, print, fit a phone, follow the dark, and ask for nothing."""

from __future__ import annotations

import base64
import json
import os
import shutil

import pytest

from browser.reports import hostile_report, hostile_run

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    if CHROMIUM is None or DRIVER is None:
        reason = "chromium and chromedriver are missing (Debian: apt-get install chromium chromium-driver)"
        if os.environ.get("CI"):
            pytest.fail(reason)
        pytest.skip(reason)
    if not os.environ.get("CI"):
        pytest.importorskip("selenium")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        f"--user-data-dir={tmp_path_factory.mktemp('profile')}",
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    made = {"calibration": hostile_report(), "run": hostile_run()}
    for name, report in made.items():
        (folder / f"{name}.html").write_text(report.to_html(), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


@pytest.fixture(params=["calibration", "run"])
def page(request, browser, pages):
    """An opened page, at desktop width in the light; its address."""
    for log in ("browser", "performance"):
        browser.get_log(log)  # reading empties it
    emulate(browser, width=1200, scheme="light")
    browser.get(pages[request.param])
    return pages[request.param]


def emulate(browser, *, width, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)


def colours(browser):
    script = "const s = getComputedStyle(document.body); return [s.color, s.backgroundColor]"
    return [[float(part) for part in each.split("(")[1].rstrip(")").split(",")[:3]] for each in browser.execute_script(script)]


def contrast(ink, paper):
    """Contrast ratio as WCAG 2.2 defines it."""

    def luminance(colour):
        channels = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(ink), luminance(paper)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_no_errors_no_requests_and_hostile_text_runs_nothing(browser, page):
    assert browser.get_log("browser") == []
    sent = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    urls = {each["params"]["request"]["url"] for each in sent if each["method"] == "Network.requestWillBeSent"}
    assert {url for url in urls if not url.startswith("data:")} == {page}
    assert browser.execute_script("return typeof window.pwned") == "undefined"
    assert browser.execute_script("return document.scripts.length") == 1
    assert (
        browser.execute_script("return document.querySelectorAll('img, iframe, object, embed, [onerror], [onload]').length") == 0
    )
    assert "window.pwned = 1" in browser.execute_script("return document.body.textContent")  # shown as it was written


def test_the_policy_stops_a_script_that_gets_in(browser, page):
    # Were escaping to fail, the page's policy would still hold.
    browser.execute_script(
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 9'; document.body.append(s);"
        "const d = document.createElement('div'); d.innerHTML = '<img src=x onerror=\"window.pwned = 9\">'; document.body.append(d);"
    )
    assert browser.execute_script("return typeof window.pwned") == "undefined"


@pytest.mark.parametrize("page", ["calibration"], indirect=True)
def test_plots_are_drawn(browser, page):
    sizes = browser.execute_script(
        "return [...document.querySelectorAll('svg.plot')].map(s => [s.getBoundingClientRect().width, s.querySelectorAll('path').length])"
    )
    assert len(sizes) == 8  # MAE, curve, learning, four thresholds, levels
    assert all(width > 200 and paths > 5 for width, paths in sizes)
    ids = browser.execute_script("return [...document.querySelectorAll('[id]')].map(e => e.id)")
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("page", ["calibration"], indirect=True)
def test_the_filter(browser, page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.support.ui import Select

    def shown():
        return [each.text for each in browser.find_elements(By.CSS_SELECTOR, "article.case") if each.is_displayed()]

    every = shown()
    assert f"{len(every)} of {len(every)} shown" in browser.page_source
    find = browser.find_element(By.NAME, "text")
    find.send_keys("ALPHA answer")
    some = shown()
    assert 0 < len(some) < len(every)
    assert all("alpha" in each for each in some)
    find.clear()
    find.send_keys(" ")
    assert len(shown()) == len(every)
    direction = Select(browser.find_element(By.NAME, "direction"))
    direction.select_by_visible_text("too high")
    assert 0 < len(shown()) < len(every)
    assert all("too high" in each for each in shown())
    direction.select_by_index(0)
    slices = Select(browser.find_element(By.NAME, "slice"))
    slices.select_by_visible_text("<i>one</i>")
    assert 0 < len(shown()) < len(every)
    assert all("<i>one</i>" in each for each in shown())
    find.send_keys("nothing has this")
    assert shown() == []


@pytest.mark.parametrize("width", [320, 390, 768])
def test_a_narrow_screen_has_no_overflow(browser, page, width):
    emulate(browser, width=width, scheme="light")
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    outside = browser.execute_script(
        "return [...document.querySelectorAll('body *')].filter(e => !e.closest('.scroll, svg') && e.getBoundingClientRect().right > innerWidth + 1)"
        ".map(e => e.outerHTML.slice(0, 80))"
    )
    assert outside == []


def test_dark_and_light_are_both_readable(browser, page):
    seen = {}
    for scheme in ("light", "dark"):
        emulate(browser, width=1200, scheme=scheme)
        seen[scheme] = colours(browser)
        assert contrast(*seen[scheme]) >= 7
    assert seen["light"] != seen["dark"]
    ink = browser.execute_script("return getComputedStyle(document.querySelector('svg.plot text')).fill")
    assert ink == "rgb({:.0f}, {:.0f}, {:.0f})".format(*seen["dark"][0])


def test_print(browser, page):
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"])
    assert pdf.startswith(b"%PDF")
    assert len(pdf) > 10_000
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") + pdf.count(b"/Type /Page/") > 1


@pytest.mark.parametrize("page", ["calibration"], indirect=True)
def test_without_script_everything_is_there(browser, pages, page):
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(pages["calibration"])
        from selenium.webdriver.common.by import By

        assert not browser.find_element(By.CSS_SELECTOR, "form.filter").is_displayed()
        assert len(browser.find_elements(By.CSS_SELECTOR, "article.case")) > 5
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
