#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Gets the state of all threads of a program that seems to hang; from its host if the program does not respond.

The request to the program runs in a sandbox, for a few seconds at most. The host reports what proc(5) has of each
thread of the program and of its descendants: name, state, wait channel in the kernel, and how often it ran.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import Process, descendants, running
from ansible.module_utils.sandbox import Sandbox, confined
from ansible.module_utils.supervision import ControllerGoneError, run_once

DOCUMENTATION = """
module: thread_states
short_description: get the state of the threads of a program that hangs
options:
  commands:
    description: Commands that query the program, in this order, each a list of words. After a time-out the host's
      view of the threads follows instead.
    type: list
    elements: list
    required: true
  timeout:
    description: Seconds for all commands together.
    type: float
    required: true
  pid_file:
    description: The pid file of the program.
    type: path
    required: true
  uid:
    description: User and group id of the sandbox of the commands.
    type: int
    required: true
  reads:
    description: Files and directories that those commands see.
    type: list
    elements: str
    default: []
  pid_directory:
    description: The directory of the pid file of a running command.
    type: path
    required: true
"""

RETURN = """
output:
  description: The output of each command, below a line with the command; an empty text if the program does not run.
  type: str
  returned: always
"""

OUTPUT_MOST = 400_000
"""Max characters of output that are returned, because the program may be untrusted."""
THREADS_MOST = 256
FILE_BYTES = 4096
FILES = ("comm", "stat", "wchan", "status", "stack")
"""Files of proc(5) of each thread; an unreadable one is left out with its error."""


def states(params: dict[str, Any]) -> Iterator[str]:
    """Returns the program's response and, if it does not respond in time, what its host sees."""
    process = running(Path(params["pid_file"]))
    if process is None:
        return
    box = Sandbox(params["uid"], reads=params["reads"], network="none")
    deadline = time.monotonic() + params["timeout"]
    for argv in params["commands"]:
        left = max(0.0, deadline - time.monotonic())
        answer = run_once(confined(argv, box), timeout=left, directory="/", pid_directory=params["pid_directory"])
        yield f"$ {' '.join(argv)}\n{answer['stdout']}{answer['stderr']}"
        if answer["timed_out"]:
            yield f"No response within {params['timeout']:g} s. The threads as its host sees them:\n"
            yield from threads(process)
            return


def threads(program: Process) -> Iterator[str]:
    """Returns what the host knows of each thread of a program and of its descendants."""
    for process in [program, *descendants({program.pid})]:
        for folder in islice(Path(f"/proc/{process.pid}/task").glob("*"), THREADS_MOST):
            yield f"{folder}:\n" + "".join(f"{name}: {_text(folder / name)}\n" for name in FILES)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES).decode("utf-8", "backslashreplace").strip()
    except OSError as error:  # for example because the thread has ended
        return f"({error.strerror})"


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "commands": {"required": True},
            "timeout": {"required": True},
            "pid_file": {"required": True},
            "uid": {"required": True},
            "reads": {"default": []},
            "pid_directory": {"required": True},
        },
    )
    try:
        output = "".join(states(checked(module, "thread_states")))
        if len(output) > OUTPUT_MOST:
            output = f"{output[:OUTPUT_MOST]}\n[{len(output) - OUTPUT_MOST} characters left out]\n"
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the program could not be queried: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    module.exit_json(changed=False, output=output)


if __name__ == "__main__":
    main()
