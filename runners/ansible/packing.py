# SPDX-License-Identifier: BSD-2-Clause
"""Packs Ansible's modules with their bytecode.

A host gets a module as a zip file with the sources of all that it imports. Compiling them on each call takes longer
than the work of most modules.
"""

import marshal
import struct
import sys
import zipfile
from importlib.util import MAGIC_NUMBER
from typing import Any

UNCHECKED_HASH = 0b01
"""Flags of a .pyc file (PEP 552): it is valid without a check of the source."""


class Packed(zipfile.ZipFile):
    """A zip file with the bytecode of each source.

    zipimport prefers the bytecode, and takes the source if its Python has another version.
    """

    def writestr(self, zinfo_or_arcname: zipfile.ZipInfo | str, data: Any, *options: Any, **more: Any) -> None:
        """Adds a file, as ZipFile does."""
        super().writestr(zinfo_or_arcname, data, *options, **more)
        file = zinfo_or_arcname if isinstance(zinfo_or_arcname, str) else zinfo_or_arcname.filename
        if file.endswith(".py"):
            code = marshal.dumps(compile(data, file, "exec", dont_inherit=True))
            super().writestr(f"{file}c", MAGIC_NUMBER + struct.pack("<L8x", UNCHECKED_HASH) + code)


class _Zipfile:
    """What Ansible's packing uses of the module zipfile."""

    ZipFile = Packed
    ZipInfo = zipfile.ZipInfo
    ZIP_STORED = zipfile.ZIP_STORED
    ZIP_DEFLATED = zipfile.ZIP_DEFLATED


def install() -> None:
    """Makes the imported Ansible pack with bytecode."""
    sys.modules["ansible.executor.module_common"].zipfile = _Zipfile  # type: ignore[attr-defined]
