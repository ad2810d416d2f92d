# SPDX-License-Identifier: BSD-2-Clause
"""Makes pictures of served pages, such as the one in the README.

python -m tests.browser.screenshot http://127.0.0.1:8000/runs/1/compare/deferred..direct/ docs/images/comparison.png
python -m tests.browser.screenshot --telephone --dark --no-javascript --whole http://127.0.0.1:8000/ home.png
"""

from __future__ import annotations

import argparse

from playwright.sync_api import ViewportSize, sync_playwright

from tests.browser.chromium import CHROMIUM, CHROMIUM_FLAGS

DESKTOP = ViewportSize(width=1200, height=900)
TELEPHONE = ViewportSize(width=390, height=844)


def main() -> None:
    """Take a picture of the top of a page, or of all of it, with the graphs in view drawn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("address")
    parser.add_argument("file")
    parser.add_argument("--telephone", action="store_true", help="a narrow screen")
    parser.add_argument("--dark", action="store_true", help="the dark colour scheme")
    parser.add_argument("--no-javascript", action="store_true", help="what is there without scripts")
    parser.add_argument("--whole", action="store_true", help="the whole page, not only its top")
    options = parser.parse_args()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_FLAGS)
        page = browser.new_page(
            viewport=TELEPHONE if options.telephone else DESKTOP,
            color_scheme="dark" if options.dark else "light",
            java_script_enabled=not options.no_javascript,
        )
        page.goto(options.address)
        if not options.no_javascript and page.locator("[data-graph]").count():
            page.locator("[data-graph]").first.scroll_into_view_if_needed()
            page.locator(".main-svg").first.wait_for()
            page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=options.file, full_page=options.whole)
        browser.close()


if __name__ == "__main__":
    main()
