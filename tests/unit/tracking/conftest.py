# SPDX-License-Identifier: BSD-2-Clause
"""A repository whose main branch can be tracked."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.checkouts import Checkout
from tests.factories import create_testbed
from tests.laboratory import Laboratory
from tests.unit.accounts.conftest import forget_limits


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Let every test begin with unused limits."""
    forget_limits()


@pytest.fixture
def laboratory(checkout: Checkout, settings: Settings, tmp_path: Path, db: None) -> Laboratory:
    settings.PATCH_REPOSITORY = checkout.tree
    settings.PERFWEB_VAR = tmp_path / "var"
    create_testbed()
    return Laboratory(checkout)
