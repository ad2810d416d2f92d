# SPDX-License-Identifier: BSD-2-Clause
"""A forge, from the fixtures of its own tests."""

from tests.unit.forges.conftest import bot_on, github

__all__ = ["bot_on", "github"]
