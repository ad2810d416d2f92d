# SPDX-License-Identifier: BSD-2-Clause
"""Static files for browsers."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from django.conf import settings

STATIC = Path(settings.BASE_DIR) / "static"

# Of the npm package plotly.js-cartesian-dist-min 4.1.1.
VENDORED = {
    "plotly-cartesian.min.js": "79542150855a52c567260e3137095dbe2b744e6d702a5cabe67da246942fba7a",
    "plotly-cartesian.LICENSE": "8c45d9eaf50c2f72dd9c7ab9ef440788ba58a3538484b5c51c1f17d5128752e7",
}


# Of the npm package axe-core 4.14.1.
VENDORED_FOR_TESTS = {
    "axe.min.js": "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c",
    "axe.LICENSE": "af175b9d96ee93c21a036152e1b905b0b95304d4ae8c2c921c7609100ba8df7e",
}


@pytest.mark.parametrize(
    ("folder", "published"),
    [("static/vendor", VENDORED), ("tests/browser/vendor", VENDORED_FOR_TESTS)],
)
def test_vendored_files_are_those_that_were_published(folder: str, published: dict[str, str]) -> None:
    files = (Path(settings.BASE_DIR) / folder).iterdir()
    assert {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files} == published


def test_graphs_offer_no_upload_and_no_logo() -> None:
    script = (STATIC / "graphs.js").read_text()
    assert "showSendToCloud: false" in script
    assert "displaylogo: false" in script


def test_our_own_files_load_nothing_from_elsewhere() -> None:
    templates = Path(settings.BASE_DIR) / "templates"
    own = [*STATIC.glob("*.css"), *STATIC.glob("*.js"), *templates.rglob("*.html")]
    assert own
    for path in own:
        assert not re.search(r"(src|href|url|import)\s*[=(]?\s*[\"']?(https?:)?//", path.read_text()), path
