# SPDX-License-Identifier: BSD-2-Clause
"""Processes forked from a server that has imported everything (multiprocessing, “forkserver”), because the imports of a
web server or a worker take longer than most tests.
"""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Mapping
from multiprocessing import forkserver
from multiprocessing.context import ForkServerProcess

_CONTEXT = multiprocessing.get_context("forkserver")
_preloaded: dict[str, dict[str, str]] = {}
"""What the one server of this process has imported, and the environment in which it has read the settings."""


def forked(
    preload: str, environment: Mapping[str, str], target: Callable[..., object], *arguments: object
) -> ForkServerProcess | None:
    """A process that calls `target`, with the module `preload` imported; None if the server has read other settings, or
    has imported another module.
    """
    if not _preloaded:
        _start(preload, environment)
    if _preloaded.get(preload) != _relevant(environment):
        return None
    process = _CONTEXT.Process(target=target, args=arguments)
    process.start()
    return process


def _start(preload: str, environment: Mapping[str, str]) -> None:
    _CONTEXT.set_forkserver_preload([preload])
    before = dict(os.environ)
    os.environ.update(environment)
    try:
        forkserver.ensure_running()
    finally:
        for name in environment.keys() - before.keys():
            del os.environ[name]
        os.environ.update(before)
    _preloaded[preload] = _relevant(environment)


def _relevant(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment on which settings depend."""
    return {name: value for name, value in environment.items() if name.startswith(("PERFWEB_", "DJANGO_", "LD_"))}
