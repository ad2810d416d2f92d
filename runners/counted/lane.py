# SPDX-License-Identifier: BSD-2-Clause
"""The programs of this lane as an archive, which a host of a testbed that counts gets beside the sources of a kernel.

There they run in a sandbox: make.py builds the kernel, and sample.py boots it, with nothing but Python's own library.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import tarfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import perfweb.counted

HERE = Path(__file__).resolve().parent
FOLDER = "lane"
"""The folder of these programs in the archive, and below the prefix of a build."""


def _files() -> Iterator[tuple[str, bytes]]:
    yield "runners/__init__.py", b""
    yield "runners/cpio.py", (HERE.parent / "cpio.py").read_bytes()
    yield "perfweb/__init__.py", b""
    for package in (HERE, Path(perfweb.counted.__file__).parent):
        for path in sorted(package.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"{package.parent.name}/{package.name}/{path.relative_to(package)}", path.read_bytes()


@cache
def archive() -> bytes:
    """Returns the programs as tar.gz; the same programs give the same bytes."""
    packed = io.BytesIO()
    with (
        gzip.GzipFile(fileobj=packed, mode="wb", mtime=0) as compressed,
        tarfile.open(fileobj=compressed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for name, content in _files():
            info = tarfile.TarInfo(f"{FOLDER}/{name}")
            info.size, info.mode = len(content), 0o644
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def build_key(key: str) -> str:
    """Returns the name of a build on hosts: another version of these programs builds anew, and counts anew."""
    return f"{key}-{hashlib.sha256(archive()).hexdigest()[:16]}"
