"""The page of walkthrough.py in a real browser: headless Chromium, driven by Playwright.

These tests need the package playwright and an installed Chromium. Otherwise they are skipped.
"""

import collections
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import gpt2
import model_names
import utils
import walkthrough
from page.tracer import trace

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
PROMPT = "The king sings"
DESK = {"width": 1440, "height": 900}


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
    """Opens the page in a window of a given size and colour scheme. Fails if the page complains."""
    pages, complaints, requests = [], [], []

    def open_page(viewport=DESK, **options):
        page = browser.new_page(viewport=viewport, **options)
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
    """There are six chapters, a fold for each function, and every picture is decoded."""
    page = visit()
    assert page.locator("main > section > h2").count() == 6
    functions = [name for name in dir(gpt2) if f"def {name}(" in Path(gpt2.__file__).read_text()]
    assert page.locator("details.function").count() == len(functions) > 10
    assert page.locator(".heads svg[role=img]").count() == 5 * 4
    broken = "[...document.images].filter(i => !i.complete || i.naturalWidth == 0).length"
    assert page.evaluate(broken) == 0


@pytest.mark.parametrize("width", [375, 420, 900, 1024, 1300, 1366, 1400, 1440])
def test_nothing_is_wider_than_the_window(visit, width):
    """This holds folded and unfolded, and no table of the chapters is cut off."""
    page = visit({"width": width, "height": 900})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.locator("details").evaluate_all("all => all.forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") == width
    tables = page.locator(".choice, .stream, .vectors, .work")
    assert tables.count() == 4 + 2 + 1 + 2
    cut = "all => all.filter(e => e.scrollWidth > e.clientWidth).map(e => e.ariaLabel)"
    assert tables.evaluate_all(cut) == []


@pytest.mark.parametrize("width", [420, 1300, 1440, 1536])
def test_no_head_stands_in_a_row_alone(visit, width):
    """The pictures of a layer's attention heads are in rows of two or four."""
    page = visit({"width": width, "height": 900})
    tops = "all => all.map(e => Math.round(e.getBoundingClientRect().top))"
    rows = collections.Counter(page.locator("#heads figure").evaluate_all(tops))
    assert set(rows.values()) <= {2, 4}


def test_numbers_seen_are_those_of_the_run(visit):
    """The range and mean of the first step's logits are compared, and the ten largest of them."""
    encoder, hparams, params = utils.load_encoder_hparams_and_params("tiny", model_names.MODELS_DIR)
    ids = np.array([encoder.encode(PROMPT)])
    logits, _ = gpt2.gpt2(ids, **params, n_head=hparams["n_head"])
    page = visit()
    seen = page.locator("#gpt2 .seen").get_by_text(f"[1, {hparams['n_vocab']}] float32").first
    value = seen.locator("..").text_content()
    assert f"{logits.min():.4g} to {logits.max():.4g}, mean {logits.mean():.4g}" in value
    cells = page.locator("#words table").first.locator("tbody tr td:nth-child(3)")
    shown = [float(text) for text in cells.all_inner_texts()[:10]]
    assert shown == [float(f"{logit:.4g}") for logit in np.sort(logits[0])[::-1][:10]]


def test_the_chosen_layer_is_shown_by_mouse_and_by_key(visit):
    page = visit()

    def layers_shown():
        shown = page.locator("#attention .layer:visible")
        return set(shown.evaluate_all("all => all.map(element => element.classList[1])"))

    assert layers_shown() == {"layer-1"}
    page.get_by_label("3", exact=True).check()
    assert layers_shown() == {"layer-3"}
    page.keyboard.press("ArrowRight")
    assert layers_shown() == {"layer-4"}


def test_a_function_unfolds_by_key_button_and_link(visit):
    page = visit()
    assert page.locator("#gelu pre:visible").count() == 0
    page.locator("#gelu > summary").focus()
    page.keyboard.press("Enter")
    assert page.locator("#gelu pre:visible").count() > 0
    line = page.locator("#softmax pre span[id]").nth(1)
    page.evaluate("id => location.hash = id", line.get_attribute("id"))
    line.wait_for(state="visible")
    page.get_by_role("button", name="Unfold all functions").click()
    assert page.locator("details.function:not([open])").count() == 0


def weights_of(layer, head):
    """The attention weights of the prompt in the first step: [T, T]."""
    encoder, hparams, params = utils.load_encoder_hparams_and_params("tiny", model_names.MODELS_DIR)
    found = []

    def keep(call, name, value):
        if (call.function, name) == ("attention", "weights"):
            found.append(value[0].copy())

    ids = np.array([encoder.encode(PROMPT)])
    trace(lambda: gpt2.gpt2(ids, **params, n_head=hparams["n_head"]), gpt2.__file__, keep)
    return found[layer][head]


def test_a_number_is_read_by_mouse_finger_and_key(visit):
    """The number is the attention weight in row 3 and column 1 that the program computes."""
    weight = pytest.approx(weights_of(2, 0)[3, 1], rel=0.01)  # the page rounds to three digits
    for is_touch in (False, True):
        page = visit(has_touch=is_touch)
        image = page.locator(".heads svg image").nth(2 * 4)
        image.scroll_into_view_if_needed()
        area, cells = image.bounding_box(), len(image.get_attribute("data-labels").split())
        x = area["x"] + area["width"] * 1.5 / cells
        y = area["y"] + area["height"] * 3.5 / cells
        page.touchscreen.tap(x, y) if is_touch else page.mouse.move(x, y)
        number = page.locator("#number:visible")
        assert re.fullmatch("“ings” looks at “·king”: .*", number.inner_text())
        assert float(number.inner_text().split()[-1]) == weight
    page.keyboard.press("Escape")
    assert number.count() == 0
    page = visit()
    page.locator(".heads svg image").nth(2 * 4).focus()
    number = page.locator("#number:visible")
    for key in ["ArrowDown"] * 3 + ["ArrowRight"]:
        page.keyboard.press(key)
    assert float(number.inner_text().split()[-1]) == weight


def test_a_number_is_read_from_a_picture_in_panels(visit):
    """The place is given as NumPy would index it, and keys pass over the gap between panels."""
    page = visit()
    picture = page.locator("#attention .layer-1 img[data-name=q]").first
    picture.focus()
    page.keyboard.press("ArrowDown")
    number = page.locator("#number:visible")
    assert number.inner_text().startswith("q[0, 0, 1, 0] = ")
    for _ in range(32):
        page.keyboard.press("ArrowRight")
    assert number.inner_text().startswith("q[0, 1, 1, 0] = ")


def test_the_page_suits_light_dark_and_paper(visit):
    """The page is light, or dark with light letters.

    On paper it is white, with all functions unfolded.
    """
    assert brightness(background(visit())) > 240
    dark = visit(color_scheme="dark")
    assert brightness(background(dark)) < 40
    assert brightness(dark.evaluate("getComputedStyle(document.body).color")) > 200
    paper = visit()
    paper.emulate_media(media="print")
    assert background(paper) == "rgb(255, 255, 255)"
    assert paper.locator("#attention .seen:visible").count() > 10
