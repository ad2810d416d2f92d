# SPDX-License-Identifier: BSD-2-Clause
"""Runs a Python module that Ctrl-C ends without a traceback, with the exit status that shells use.

    env --block-signal=INT python -m runners.interruptible MODULE ARGUMENTS ...

Python raises KeyboardInterrupt from its first import on. So SIGINT is blocked at the start and unblocked here. It is
handled even if the parent ignores it, as a non-interactive shell does for a command with `&` (POSIX XCU 2.11), because
`./dev` sends SIGINT to end its jobs.
"""

from __future__ import annotations

import runpy
import signal
import sys

INTERRUPTED = 130
AGAIN_SECONDS = 0.05


def command(module: str, *arguments: str) -> list[str]:
    """Return the words that run a module of this project like this, for a program that Ctrl-C reaches with its child.

    The child prints to the same terminal: a traceback of its imports would be one of the command.
    """
    return ["env", "--block-signal=INT", sys.executable, "-m", "runners.interruptible", module, *arguments]


def _lost(unraisable: sys.UnraisableHookArgs) -> None:
    """Send SIGINT again if Python has dropped the KeyboardInterrupt of the previous one.

    Python drops it in a callback or a destructor, for example while a module is imported.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        signal.signal(signal.SIGALRM, lambda *_: signal.raise_signal(signal.SIGINT))
        signal.setitimer(signal.ITIMER_REAL, AGAIN_SECONDS)
    else:
        sys.__unraisablehook__(unraisable)


def _interrupted(failure: BaseException | None) -> bool:
    """Return whether a KeyboardInterrupt led to this exception.

    Python and libraries raise another one in its place: until Python 3.11 a RuntimeError for each that leaves a
    `__set_name__`, which `functools.cached_property` has, so most imports can end like this.
    """
    while failure is not None and not isinstance(failure, KeyboardInterrupt):
        failure = failure.__cause__ or failure.__context__
    return failure is not None


def main() -> None:
    """Command line; see the top of this file."""
    del sys.argv[0]
    try:
        sys.unraisablehook = _lost
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    except (KeyboardInterrupt, Exception) as failure:
        if not _interrupted(failure):
            raise
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # a second SIGINT ends the process while it waits for threads
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
