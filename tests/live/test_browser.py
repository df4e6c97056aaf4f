"""The page of walkthrough.py in a real browser: headless Chromium, driven by Playwright.

Needs the package playwright and a Chromium of the system; skipped with the reason without them.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import gpt2
import utils
import walkthrough

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM = next(filter(None, map(shutil.which, NAMES)), None)
if CHROMIUM is None:
    pytest.skip(f"none of {', '.join(NAMES)} is installed", allow_module_level=True)

SWITCHES = [
    "--no-sandbox",  # with its sandbox, Chromium refuses to run as root
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PROMPT = "The king said"
PHONE, DESK = {"width": 375, "height": 800}, {"width": 1440, "height": 900}


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "walkthrough.html"
    walkthrough.main(PROMPT, output=str(path))
    return path.as_uri()


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        yield browser
        browser.close()


@pytest.fixture
def visit(browser, address):
    """Opens the page in a window of a given size and scheme; fails on any complaint of it."""
    pages, complaints, requests = [], [], []

    def open_page(viewport=DESK, color_scheme="light"):
        page = browser.new_page(viewport=viewport, color_scheme=color_scheme)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert complaints == []
    assert {url for url in requests if not url.startswith("data:")} == {address}


def brightness(colour):
    return sum(map(int, re.findall(r"\d+", colour)[:3])) / 3


def background(page):
    return page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_all_parts_are_there(visit):
    """Six chapters with headings, a fold for each function, every picture of them decoded."""
    page = visit()
    assert page.locator("main > section > h2").count() == 6
    functions = [name for name in dir(gpt2) if f"def {name}(" in Path(gpt2.__file__).read_text()]
    assert page.locator("details.function").count() == len(functions) > 10
    assert page.locator("svg[role=img]").count() == 5 * 4
    broken = "[...document.images].filter(i => !i.complete || i.naturalWidth == 0).length"
    assert page.evaluate(broken) == 0


@pytest.mark.parametrize("viewport", [PHONE, {"width": 900, "height": 900}, DESK], ids=str)
def test_nothing_is_wider_than_the_window(visit, viewport):
    page = visit(viewport)
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]
    page.locator("details").evaluate_all("all => all.forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == viewport["width"]


def test_numbers_seen_are_those_of_the_run(visit):
    """The logits of the first step, and the ten likeliest of them."""
    encoder, hparams, params = utils.load_encoder_hparams_and_params("tiny", utils.MODELS_DIR)
    ids = np.array([encoder.encode(PROMPT)])
    logits, _ = gpt2.gpt2(ids, **params, n_head=hparams["n_head"])
    page = visit()
    seen = page.locator("#gpt2 .seen").get_by_text(f"[1, {hparams['n_vocab']}] float32").first
    value = seen.locator("..").inner_text()
    assert f"{logits.min():.4g} to {logits.max():.4g}, mean {logits.mean():.4g}" in value
    cells = page.locator("#words table").first.locator("tbody tr td:nth-child(3)")
    shown = [float(text) for text in cells.all_inner_texts()[:10]]
    assert shown == [float(f"{logit:.4g}") for logit in np.sort(logits[0])[::-1][:10]]


def test_the_chosen_layer_is_shown_by_mouse_and_by_key(visit):
    page = visit()

    def layers_shown():
        shown = page.locator("#block .layer:visible")
        return set(shown.evaluate_all("all => all.map(element => element.classList[1])"))

    assert layers_shown() == {"layer-1"}
    page.get_by_label("3", exact=True).check()
    assert layers_shown() == {"layer-3"}
    page.keyboard.press("ArrowRight")
    assert layers_shown() == {"layer-4"}


def test_a_function_folds_by_key(visit):
    page = visit()
    page.locator("#gelu > summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#gelu pre:visible").count() == 0


def test_light_dark_and_paper(visit):
    """Dark letters on light, light on dark; on paper white, with every function unfolded."""
    assert brightness(background(visit())) > 240
    dark = visit(color_scheme="dark")
    assert brightness(background(dark)) < 40
    assert brightness(dark.evaluate("getComputedStyle(document.body).color")) > 200
    paper = visit()
    paper.emulate_media(media="print")
    assert background(paper) == "rgb(255, 255, 255)"
    assert paper.locator("#attention .seen:visible").count() > 10
