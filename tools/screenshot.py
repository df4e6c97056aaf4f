"""Takes tools/walkthrough.png, the README's picture of the page that walkthrough.py writes.

    pip install -r requirements-dev.txt -r tests/live/requirements-browser.txt
    python tools/screenshot.py       (with Chromium installed)
"""

import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "live")]

from test_browser import CHROMIUM, PROMPT, SWITCHES, sync_api  # noqa: E402

import walkthrough  # noqa: E402


def main():
    with tempfile.TemporaryDirectory() as folder, sync_api.sync_playwright() as playwright:
        path = Path(folder) / "walkthrough.html"
        walkthrough.main(PROMPT, output=str(path))
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=SWITCHES)
        page = browser.new_page(viewport={"width": 1070, "height": 310})
        page.goto(path.as_uri())
        # The four heads of layer 5. The pointer is on a cell of the third.
        page.get_by_text("Layer 5", exact=True).evaluate(
            "e => scrollTo(0, e.getBoundingClientRect().top - 10)")
        area = page.locator("#heads .heads image").nth(18).bounding_box()
        tokens, row, column = 7, 5, 4  # “·they” looks at “·that”
        page.mouse.move(area["x"] + area["width"] * (column + 0.5) / tokens,
                        area["y"] + area["height"] * (row + 0.5) / tokens)
        page.screenshot(path=ROOT / "tools" / "walkthrough.png")
        browser.close()


if __name__ == "__main__":
    main()
