# SPDX-License-Identifier: BSD-2-Clause
"""A forge and a tracked branch, from the fixtures of their own tests."""

from tests.unit.forges.conftest import bot_on, github
from tests.unit.tracking.conftest import laboratory

__all__ = ["bot_on", "github", "laboratory"]
