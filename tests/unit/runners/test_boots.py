# SPDX-License-Identifier: BSD-2-Clause
"""A boot must have the configured tunables."""

import pytest

from runners.boots import tunables_problem

EFFECTIVE = {"net.isr.dispatch": "direct", "debug.mpsafenet": "1", "kern.ident": "x"}


@pytest.mark.parametrize("requested", [{}, {"net.isr.dispatch": "direct"}, {"debug.mpsafenet": "1", "kern.ident": "x"}])
def test_what_was_requested(requested: dict[str, str]) -> None:
    assert tunables_problem(requested, EFFECTIVE) == ""


def test_every_difference_is_named() -> None:
    requested = {"net.isr.dispatch": "deferred", "debug.mpsafenet": "1", "net.isr.depth": "3"}
    assert tunables_problem(requested, EFFECTIVE) == (
        "booted with other tunables than configured: "
        "net.isr.dispatch is direct instead of deferred, net.isr.depth is unknown instead of 3"
    )
