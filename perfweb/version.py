# SPDX-License-Identifier: BSD-2-Clause
"""Which code answers: another version may say the same in other words and bytes."""

import hashlib
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path

from django.conf import settings

import perfweb


@cache
def code_version() -> str:
    """Return a digest of the code and the files that make pages, answers and downloads, or are named in them."""
    digest = hashlib.sha256()
    code, root = Path(perfweb.__path__[0]), settings.BASE_DIR
    sources = (
        (code, "*.py"),
        (code, "*.yaml"),
        (root / "templates", "*.html"),
        (root / "static", "*.*"),
        (root / "docs", "*.md"),
    )
    for folder, pattern in sources:
        for path in sorted(folder.rglob(pattern)):
            digest.update(path.read_bytes())
    for library in ("django", "numpy", "scipy", "pyarrow"):
        digest.update(version_of(library).encode())
    return digest.hexdigest()
