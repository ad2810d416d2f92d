#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs commands one after the other and returns the output of each.

Each has a time limit, and is killed with everything it started when the time is up or the controller disconnects. The
module never fails because a command fails: the caller gets status and output of each and decides. Each runs in a
sandbox of its own, except those that read the kernel's counters, which root runs.
"""

from __future__ import annotations

import tempfile
from typing import Any

from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.sandbox import HOST_NETWORK, Sandbox, confined
from ansible.module_utils.supervision import ControllerGoneError, run_once

DOCUMENTATION = """
module: supervised_command
short_description: run commands under a time limit and keep their output
options:
  commands:
    description: Commands, each a list of words; no shell is involved.
    type: list
    elements: list
    required: true
  timeout:
    description: Seconds that one command may take.
    type: float
    required: true
  uid:
    description: User and group id to run as, in a sandbox. Without it commands can only ask the kernel.
    type: int
  reads:
    description: Files and directories that commands in a sandbox see.
    type: list
    elements: str
    default: []
  network:
    description: The network of commands in a sandbox, C(none), C(host), or the file of a network namespace.
    type: str
    default: host
  pid_directory:
    description: Where a pid file lies as long as a command runs.
    type: path
"""

RETURN = """
results:
  description: For every command C(rc) (negative is the number of the signal that ended it), C(stdout), C(stderr),
    C(started) (seconds since 1970), C(seconds), and C(timed_out).
  type: list
  returned: always
"""


def run_all(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs every command and returns the documented result."""
    directory = params["pid_directory"] or tempfile.gettempdir()
    return [
        run_once(_words(argv, params), timeout=params["timeout"], directory="/", pid_directory=directory)
        for argv in params["commands"]
    ]


def _words(argv: list[str], params: dict[str, Any]) -> list[str]:
    if params["uid"] is None:
        return argv
    words: list[str] = confined(argv, Sandbox(params["uid"], reads=params["reads"], network=params["network"]))
    return words


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "commands": {"required": True},
            "timeout": {"required": True},
            "uid": {},
            "reads": {"default": []},
            "network": {"default": HOST_NETWORK},
            "pid_directory": {},
        },
    )
    params = checked(module, "supervised_command")
    try:
        results = run_all(params)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the commands could not be run: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    module.exit_json(changed=True, results=results)


if __name__ == "__main__":
    main()
