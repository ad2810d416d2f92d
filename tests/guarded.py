# SPDX-License-Identifier: BSD-2-Clause
"""Modules as Ansible sends them to a host, for tests of the guard there, and others that Ansible would never send."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from collections.abc import Mapping

from runners.ansible import guard

CALL = "/bin/sh -c '/usr/bin/python3 && sleep 0'"
SHARED = "ansible/module_utils/basic.py"


def program(
    module: str,
    parameters: Mapping[str, object],
    *,
    changed: Mapping[str, bytes] | None = None,
    prefix: str = "",
    kind: type[zipfile.ZipFile] = zipfile.ZipFile,
) -> bytes:
    """A module that begins with `prefix`, with `changed` files that differ from the installed ones."""
    with zipfile.ZipFile(io.BytesIO(guard.modules())) as installed:
        wanted = [f"ansible/legacy/{module}.py", SHARED]
        files = {name: installed.read(name) for name in wanted if name in installed.namelist()}
    packed = io.BytesIO()
    with kind(packed, "w") as archive:
        for name, content in {**files, **(changed or {})}.items():
            archive.writestr(name, content)
    values = {
        "ansible_module": module,
        "module_fqn": f"ansible.legacy.{module}",
        "params": json.dumps({"ANSIBLE_MODULE_ARGS": dict(parameters)}),
        "zip_data": base64.b64encode(packed.getvalue()).decode(),
    }
    rows = "".join(f"{name}={value!r},\n" for name, value in values.items())
    return f"{prefix}\n\nif __name__ == '__main__':\n    _ansiballz_main(\n{rows})\n".encode()
