# SPDX-License-Identifier: BSD-2-Clause
"""What all commands share: with what they end, and how they print an answer for scripts."""

from __future__ import annotations

import json
from enum import IntEnum


class Status(IntEnum):
    """With what a command ends, for scripts."""

    FINE = 0
    SLOWER = 1
    WRONG_USAGE = 2
    NOT_ENOUGH_DATA = 3
    NO_ANSWER = 4
    RUN_NOT_DONE = 5
    INTERRUPTED = 130


class UsageError(Exception):
    """The command asks for what cannot be; the message says what can."""


def print_json(answer: object) -> None:
    """Print what the server answers."""
    print(json.dumps(answer, indent=1))
