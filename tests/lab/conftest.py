# SPDX-License-Identifier: BSD-2-Clause
"""A real lab of namespaces, one for the whole session, with names that no other lab has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from runners import netlab
from runners.netlab import Lab, LabError

FIRST_NET, LAST_NET = 130, 199


def raise_lab(letter: str, state: Path) -> Lab:
    """Raises a lab in the first network that is free."""
    for net in range(FIRST_NET, LAST_NET):
        lab = Lab(f"{letter}{os.getpid()}"[:9], net, state)
        try:
            netlab.up(lab)
        except LabError as error:
            if "choose another network" in str(error):
                continue
            raise
        return lab
    raise LabError(f"the networks 10.{FIRST_NET} to 10.{LAST_NET} are all taken: take down labs that nobody needs")


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab that tests leave as they found it."""
    raised = raise_lab("p", tmp_path_factory.mktemp("lab"))
    yield raised
    netlab.down(raised)


@pytest.fixture
def own_lab(tmp_path: Path) -> Iterator[Lab]:
    """A lab that a test may break."""
    raised = raise_lab("q", tmp_path / "state")
    yield raised
    netlab.down(raised)
