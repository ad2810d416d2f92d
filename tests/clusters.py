# SPDX-License-Identifier: BSD-2-Clause
"""PostgreSQL clusters of tests, with all tables: made once on this machine for the same migrations, and copied.

    python -m tests.clusters VAR gives the tests' installation below VAR this cluster, and replaces another one

The name of a cluster is a hash of all its sources, so another clone finds it.
"""

from __future__ import annotations

import fcntl
import getpass
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from runners import interruptible
from runners.services import supervisor
from runners.services.supervisor import Layout
from tests.gate.durations import cache

ROOT = Path(__file__).resolve().parents[1]
MADE_OF = ("perfweb/*/migrations/*.py", "perfweb/settings/*.py", "runners/services/*.py", "requirements.txt")
KEPT = 4
"""Max clusters in the cache, some 60 MB each; migrations have changed since the older ones."""


def key() -> str:
    """The name of a cluster of this tree, of PostgreSQL's version and of the user who may connect."""
    server = subprocess.run([supervisor.POSTGRESQL_BIN / "postgres", "--version"], capture_output=True, check=True)
    found = hashlib.sha256(server.stdout + getpass.getuser().encode())
    for pattern in MADE_OF:
        for path in sorted(ROOT.glob(pattern)):
            found.update(f"\0{path.relative_to(ROOT)}\0".encode() + path.read_bytes())
    return found.hexdigest()[:16]


def provide(layout: Layout, *, replace: bool = False) -> None:
    """Give an installation without a cluster, or with one of other migrations, a cluster whose database has all
    tables.
    """
    name, mark = key(), layout.var / "cluster"
    same = not replace or (mark.exists() and mark.read_text(encoding="ascii") == name)
    if same and (layout.postgresql_data / "PG_VERSION").exists():
        return
    supervisor.stop(layout, ["postgresql"])
    shutil.rmtree(layout.postgresql_data, ignore_errors=True)
    folder = cache("postgresql")
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / name).exists():
            _make(folder / name)
            for old in sorted(folder.glob("?" * 16), key=lambda path: path.stat().st_mtime)[:-KEPT]:
                shutil.rmtree(old)
        subprocess.run(["cp", "-a", folder / name, layout.postgresql_data], check=True)
    mark.write_text(name, encoding="ascii")


def _make(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="perfweb-cluster-") as folder:
        layout = Layout.of(Path(folder) / "var")
        try:
            supervisor.make_volatile(layout)
            supervisor.start_postgresql(layout)
            supervisor.write_environment(layout)
            environment = os.environ | layout.environment() | {"DJANGO_SETTINGS_MODULE": "perfweb.settings.development"}
            argv = interruptible.command("manage", "migrate", "--verbosity", "0")
            subprocess.run(argv, cwd=ROOT, env=environment, check=True)
        finally:
            supervisor.stop(layout, ["postgresql"])
        (layout.postgresql_data / "postgresql.auto.conf").write_bytes(b"")
        new = target.with_suffix(".new")
        shutil.rmtree(new, ignore_errors=True)
        subprocess.run(["cp", "-a", layout.postgresql_data, new], check=True)
        new.rename(target)


if __name__ == "__main__":
    provide(Layout.of(Path(sys.argv[1])), replace=True)
