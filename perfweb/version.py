# SPDX-License-Identifier: BSD-2-Clause
"""The version of the code in caches: another version may give other words and bytes for the same data."""

import hashlib
from functools import cache
from importlib.metadata import version as version_of
from pathlib import Path

from django.conf import settings

import perfweb


@cache
def code_version() -> str:
    """Return a digest of the code and of the files that affect pages, responses and downloads."""
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
