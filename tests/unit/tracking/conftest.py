# SPDX-License-Identifier: BSD-2-Clause
"""Limits that are forgotten between tests."""

from __future__ import annotations

import pytest

from tests.unit.accounts.conftest import forget_limits


@pytest.fixture(autouse=True)
def nothing_counted() -> None:
    """Let every test begin with unused limits."""
    forget_limits()
