# SPDX-License-Identifier: BSD-2-Clause
"""Writes files that are complete or absent even after a crash of the host, because tests crash kernels."""

from __future__ import annotations

import os
from pathlib import Path

from . import beneath


def write_durably(path: Path, text: str) -> None:
    """Replaces a file, and waits until its text and its name are on the disk.

    Without syncing the text first, a name can be there without its text (fsync(2)). The path must have no links. Raises
    OSError.
    """
    above, _, name = beneath.absolute(path).rpartition("/")
    new = f"{name}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with beneath.directory("/", above) as directory, beneath.opened("/", f"{above}/{new}", flags) as descriptor:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        os.fsync(descriptor)
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    # A descriptor opened with O_PATH cannot be synchronised.
    whole = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(whole)
    finally:
        os.close(whole)
