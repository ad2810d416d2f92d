# SPDX-License-Identifier: BSD-2-Clause
"""Builds are named by their content."""

from pathlib import Path

import pytest

from perfweb.builds import services
from perfweb.builds.models import BuildState
from perfweb.builds.sources import pack_sources
from tests.unit.builds.test_sources import tree


@pytest.mark.django_db
def test_build_is_made_once_and_remembers_how(tmp_path: Path) -> None:
    sources = pack_sources(tree(tmp_path), tmp_path / "store")
    build = services.named(sources, ["-Dbuildtype=release"])
    assert services.named(sources, ["-Dbuildtype=release"]) == build
    services.succeeded(build, "/prefix", "compiled\0", 12.0)
    services.succeeded(build, "/prefix", "nothing to do", None)
    build.refresh_from_db()
    assert (build.state, build.log, build.seconds) == (BuildState.READY, "compiled?", 12.0)
