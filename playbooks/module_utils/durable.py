# SPDX-License-Identifier: BSD-2-Clause
"""Files that are there with all they hold, or not at all, also after a crash of the host: tests crash kernels."""

from __future__ import annotations

import os
from pathlib import Path

from . import beneath


def write_durably(path: Path, text: str) -> None:
    """Puts a file in the place of the one there is, and waits until both its text and its name are on the disk.

    Without the first of them a name can outlive its text (fsync(2)).  No link may lead there.  Raises OSError.
    """
    above, _, name = beneath.absolute(path).rpartition("/")
    new = f"{name}.new"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    with beneath.directory("/", above) as directory, beneath.opened("/", f"{above}/{new}", flags) as descriptor:
        with open(descriptor, "w", encoding="utf-8", closefd=False) as file:
            file.write(text)
        os.fsync(descriptor)
        os.replace(new, name, src_dir_fd=directory, dst_dir_fd=directory)
    # A descriptor of a path alone (O_PATH) cannot be synchronised.
    whole = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(whole)
    finally:
        os.close(whole)
