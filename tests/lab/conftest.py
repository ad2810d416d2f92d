# SPDX-License-Identifier: BSD-2-Clause
"""A real lab of namespaces, one for the whole session, with names that no other lab has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.labs import netlab
from runners.labs.netlab import Lab
from tests.labs import raise_lab


@pytest.fixture(scope="session", autouse=True)
def var(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The driver's files, in a directory of the session, because another one would need another server for plays."""
    directory = tmp_path_factory.mktemp("driver") / "var"
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PERFWEB_VAR", str(directory))
        yield directory


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that tests must not change."""
    raised = raise_lab("p", tmp_path_factory.mktemp("lab"))
    yield raised
    netlab.down(raised)


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab that a test may break."""
    raised = raise_lab("q", tmp_path / "state")
    yield raised
    netlab.down(raised)
