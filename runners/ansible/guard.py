# SPDX-License-Identifier: BSD-2-Clause
"""Prepares the files that limit the service's key on a host: playbooks/guard.py, the packed modules, and the policy.

    python -m runners.ansible.guard FILE

packs the modules of the playbooks, exactly as Ansible sends them, into FILE. The playbook guard.yml calls this and
installs the files on real machines; the labs install them at start.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import json
import os
import shlex
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from runners import interruptible
from runners.ansible.packing import Packed

ROOT = Path(__file__).resolve().parents[2]
PLAYBOOKS = ROOT / "playbooks"
DEFAULTS = {
    "lab_root": "/var/tmp/perfweb",  # noqa: S108  # the playbooks refuse it if a stranger made it
    "builds_root": "/var/tmp/perfweb/builds",  # noqa: S108
    "meson": "meson",
    "machine_network": "",
}
"""The defaults of playbooks/roles/lab/defaults, and so the users of runs."""
UIDS = [1879048192, 2147483647]


def line(public_key: str, directory: str) -> str:
    """Returns the line of `authorized_keys` that limits a key to the guard in a directory (sshd(8))."""
    command = f"/usr/bin/python3 -IS {shlex.quote(f'{directory}/guard.py')}"
    return f'restrict,command="{command}" {public_key.strip()}\n'


def files(links: Sequence[str], **variables: str) -> dict[str, bytes]:
    """Returns the files of that directory for a host with these data links; `variables` are those of its inventory."""
    policy = {**DEFAULTS, **variables, "links": links, "uids": UIDS}
    return {
        "guard.py": (PLAYBOOKS / "guard.py").read_bytes(),
        "modules.zip": modules(),
        "policy.json": json.dumps(policy, indent=1).encode(),
    }


@functools.cache
def modules() -> bytes:
    """Packs all modules, once per process; in a child process, because Ansible takes its settings at import."""
    with tempfile.TemporaryDirectory() as directory:
        target = Path(directory, "modules.zip")
        settings = {"ANSIBLE_CONFIG": str(PLAYBOOKS / "ansible.cfg"), "ANSIBLE_HOME": directory}
        argv = interruptible.command("runners.ansible.guard", str(target))
        subprocess.run(argv, cwd=ROOT, env=os.environ | settings, check=True)
        return target.read_bytes()


def version() -> str:
    """A name for what is the same on all hosts."""
    with zipfile.ZipFile(io.BytesIO(modules())) as archive:
        packed = [(entry.filename, entry.CRC) for entry in archive.infolist()]
    return hashlib.sha256(repr(packed).encode() + (PLAYBOOKS / "guard.py").read_bytes()).hexdigest()


def pack(target: Path) -> None:
    """Writes an archive of all modules with all that they import, each file once."""
    from ansible._internal._ansiballz._builder import ExtensionManager
    from ansible.executor import module_common
    from ansible.plugins.loader import init_plugin_loader

    init_plugin_loader()
    sources = {path.stem: path.read_bytes() for path in sorted((PLAYBOOKS / "library").glob("*.py"))}
    # One search for all imports takes a tenth of the time of one for each module.
    imports = {ast.unparse(node) for text in sources.values() for node in ast.walk(ast.parse(text)) if _is_shared(node)}
    now, nothing = datetime.now(UTC), ExtensionManager()
    with Packed(target, "w") as archive:
        module_common.recursive_finder("all", "ansible.legacy.all", "\n".join(sorted(imports)), archive, now, nothing)
        archive.writestr("ansible/legacy/__init__.py", b"")
        for name, text in sources.items():
            archive.writestr(f"ansible/legacy/{name}.py", text)


def _is_shared(node: ast.AST) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ansible.module_utils")


def install(directory: Path, contents: Mapping[str, bytes]) -> None:
    """Installs the files into a directory of this machine, even while a guard of it runs."""
    directory.mkdir(mode=0o755, exist_ok=True)
    for name, content in contents.items():
        new = directory / f"{name}.new"
        new.write_bytes(content)
        new.replace(directory / name)


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
