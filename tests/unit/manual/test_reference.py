# SPDX-License-Identifier: BSD-2-Clause
"""Generated reference pages are up to date."""

from __future__ import annotations

import pytest

from tests.tutorials import ROOT
from tests.unit.manual.reference import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_the_page_is_what_the_code_has(
    name: str, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    page = ROOT / "docs" / "reference" / f"{name}.md"
    made = PAGES[name](monkeypatch)
    if request.config.getoption("--write"):
        page.write_text(made, encoding="utf-8")
    assert made == page.read_text(encoding="utf-8"), "--write generates the page"
