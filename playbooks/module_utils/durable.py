# SPDX-License-Identifier: BSD-2-Clause
"""Files that are there with all they hold, or not at all, also after a crash of the host: tests crash kernels."""

from __future__ import annotations

import os
from pathlib import Path


def write_durably(path: Path, text: str) -> None:
    """Writes a file in the place of the one there is, and waits until both its text and its name are on the disk.

    Without the first of them a name can outlive its text (fsync(2)). Raises OSError.
    """
    new = path.with_name(path.name + ".new")
    with new.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
