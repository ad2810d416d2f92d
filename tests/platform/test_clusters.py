# SPDX-License-Identifier: BSD-2-Clause
"""The cluster that jobs get a copy of has all tables, and is replaced if the migrations have changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from playbooks.module_utils import processes
from runners.services import supervisor
from runners.services.supervisor import Layout
from tests import clusters


def test_a_cluster_has_all_tables_and_is_replaced_by_that_of_other_migrations(tmp_path: Path) -> None:
    layout = Layout.of(tmp_path / "var")
    kept = layout.postgresql_data / "kept"  # a file of this cluster; a number of an inode may be used again
    clusters.provide(layout)
    supervisor.write_environment(layout)
    supervisor.start_postgresql(layout)
    try:
        environment = {**os.environ, **layout.environment(), "DJANGO_SETTINGS_MODULE": "perfweb.settings.development"}
        argv = [sys.executable, "manage.py", "migrate", "--check"]
        assert subprocess.run(argv, cwd=clusters.ROOT, env=environment).returncode == 0
        kept.touch()
        clusters.provide(layout, replace=True)
        assert kept.exists()
        (layout.var / "cluster").write_text("of other migrations", encoding="ascii")
        clusters.provide(layout)
        assert kept.exists()
        clusters.provide(layout, replace=True)
        assert not kept.exists()
        assert (layout.var / "cluster").read_text(encoding="ascii") == clusters.key()
        assert processes.running(layout.pid_file("postgresql")) is None
    finally:
        supervisor.stop(layout, ["postgresql"])
