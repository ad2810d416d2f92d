# SPDX-License-Identifier: BSD-2-Clause
"""A forge and a tracked branch, as their own tests have them."""

from tests.unit.forges.conftest import bot_on, github
from tests.unit.tracking.conftest import laboratory

__all__ = ["bot_on", "github", "laboratory"]
