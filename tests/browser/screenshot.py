# SPDX-License-Identifier: BSD-2-Clause
"""Makes the picture in the README from a page that is being served.

python -m tests.browser.screenshot http://127.0.0.1:8000/runs/1/compare/deferred..direct/ docs/images/comparison.png
"""

from __future__ import annotations

import argparse

from playwright.sync_api import sync_playwright

from tests.browser.chromium import CHROMIUM, CHROMIUM_FLAGS

WIDTH, HEIGHT = 1200, 900


def main() -> None:
    """Take a picture of the top of the page, with its graph drawn."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("address")
    parser.add_argument("file")
    arguments = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        page.goto(arguments.address)
        page.locator(".scatterlayer .point").first.wait_for()
        page.screenshot(path=arguments.file)
        browser.close()


if __name__ == "__main__":
    main()
