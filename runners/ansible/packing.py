# SPDX-License-Identifier: BSD-2-Clause
"""Ansible's modules are packed with their bytecode.

A host gets a module as a zip file of sources, from its own to those of all that it imports, and compiles them anew each
time, which takes longer than most modules' work.
"""

import marshal
import struct
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from typing import Any

UNCHECKED_HASH = 0b01
"""Of the flags of a .pyc file (PEP 552): it is right without a look at the source."""


class Packed(zipfile.ZipFile):
    """A zip file in which each source has its bytecode beside it.

    zipimport takes that first, and the source where its Python is of another version.
    """

    def writestr(self, zinfo_or_arcname: zipfile.ZipInfo | str, data: Any, *options: Any, **more: Any) -> None:
        """Adds a file, as ZipFile does."""
        super().writestr(zinfo_or_arcname, data, *options, **more)
        file = zinfo_or_arcname if isinstance(zinfo_or_arcname, str) else zinfo_or_arcname.filename
        if file.endswith(".py"):
            code = marshal.dumps(compile(data, file, "exec", dont_inherit=True))
            super().writestr(f"{file}c", MAGIC_NUMBER + struct.pack("<L8x", UNCHECKED_HASH) + code)


class _Zipfile:
    """What Ansible's packing takes of the module zipfile."""

    ZipFile = Packed
    ZipInfo = zipfile.ZipInfo
    ZIP_STORED = zipfile.ZIP_STORED
    ZIP_DEFLATED = zipfile.ZIP_DEFLATED


def install() -> None:
    """Has the Ansible that this process has imported pack so."""
    sys.modules["ansible.executor.module_common"].zipfile = _Zipfile  # type: ignore[attr-defined]
