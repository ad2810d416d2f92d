# SPDX-License-Identifier: BSD-2-Clause
"""Shared parts of all commands: exit status, and output for scripts."""

from __future__ import annotations

import json
from enum import IntEnum


class Status(IntEnum):
    """Exit status of the commands, for scripts."""

    FINE = 0
    SLOWER = 1
    WRONG_USAGE = 2
    NOT_ENOUGH_DATA = 3
    NO_ANSWER = 4
    RUN_NOT_DONE = 5
    INTERRUPTED = 130


class UsageError(Exception):
    """The arguments are invalid; the message lists the valid ones."""


def print_json(answer: object) -> None:
    """Print the response of the server."""
    print(json.dumps(answer, indent=1))
