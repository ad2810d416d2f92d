#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Asks a program that seems to hang what its threads do, and its host if it does not answer.

The program is asked in a sandbox and for a few seconds only.  What the host says
is what proc(5) has of each thread of it and of what it has started: name, state,
where it waits in the kernel, and how often it was given a CPU.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import Process, descendants, running
from ansible.module_utils.sandbox import Sandbox, confined
from ansible.module_utils.supervision import ControllerGoneError, run_once

DOCUMENTATION = """
module: ask_debugger
short_description: ask what the threads of a program that hangs do
options:
  commands:
    description: What asks the program, in this order, each a list of words. After one that gets no answer in time the
      host is asked instead.
    type: list
    elements: list
    required: true
  timeout:
    description: Seconds for all of them.
    type: float
    required: true
  pid_file:
    description: The pid file of the program.
    type: path
    required: true
  uid:
    description: User and group id of the sandbox in which the program is asked.
    type: int
    required: true
  reads:
    description: Files and directories that those commands see.
    type: list
    elements: str
    default: []
  pid_directory:
    description: Where a pid file lies as long as a command runs.
    type: path
    required: true
"""

RETURN = """
said:
  description: What was said, below a line for each command; an empty text if the program does not run.
  type: str
  returned: always
"""

SAID_MOST = 400_000
"""Characters that are handed back: the program may be a stranger's."""
THREADS_MOST = 256
FILE_BYTES = 4096
FILES = ("comm", "stat", "wchan", "status", "stack")
"""Of each thread; who may not read one goes without it."""


def ask(params: dict[str, Any]) -> Iterator[str]:
    """What the program answers, or as far as it does not, what its host sees."""
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
            yield f"It did not answer within {params['timeout']:g} s. What its host sees of its threads:\n"
            yield from threads(process)
            return


def threads(program: Process) -> Iterator[str]:
    """What the host knows of each thread of a program and of its descendants."""
    for process in [program, *descendants({program.pid})]:
        for folder in islice(Path(f"/proc/{process.pid}/task").glob("*"), THREADS_MOST):
            yield f"{folder}:\n" + "".join(f"{name}: {_text(folder / name)}\n" for name in FILES)


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(FILE_BYTES).decode("utf-8", "backslashreplace").strip()
    except OSError as error:  # such as of a thread that has ended
        return f"({error.strerror})"


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "commands": {"type": "list", "elements": "list", "required": True},
            "timeout": {"type": "float", "required": True},
            "pid_file": {"type": "path", "required": True},
            "uid": {"type": "int", "required": True},
            "reads": {"type": "list", "elements": "str", "default": []},
            "pid_directory": {"type": "path", "required": True},
        },
    )
    try:
        said = "".join(ask(checked(module, "ask_debugger")))
        if len(said) > SAID_MOST:
            said = f"{said[:SAID_MOST]}\n[{len(said) - SAID_MOST} characters left out]\n"
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the program could not be asked: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    module.exit_json(changed=False, said=said)


if __name__ == "__main__":
    main()
