# SPDX-License-Identifier: BSD-2-Clause
"""The errors of this lane, each with a message for its user."""

from __future__ import annotations


class CountedError(Exception):
    """It cannot be counted; the message has the reason and what to do."""


class BuildError(CountedError):
    """A kernel does not build; the message has the compiler's words."""


class BootError(CountedError):
    """A kernel does not boot, or fails under load; the message has the decisive line of its console."""
