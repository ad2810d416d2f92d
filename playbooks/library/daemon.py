#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Starts a program that keeps running when the play ends, and stops it later.

All its files are in one directory: NAME.pid, NAME.log (its output) and, after its end, NAME.exit with its status.
systemd-run could do the same, but not in a network namespace or a container.

The program runs in a sandbox. It can write to the subdirectory NAME.own, which is in memory and has a limited size. It
sees other directories only if they are listed.
"""

from __future__ import annotations

import re
import signal
import time
from pathlib import Path
from typing import Any

from ansible.module_utils import beneath
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import (
    Process,
    descendants,
    kill_session,
    read_pid_file,
    running,
    signal_process,
    spawn,
    wait_until_gone,
    write_pid_file,
)
from ansible.module_utils.sandbox import HOST_NETWORK, Sandbox, confined, mount_scratch, unmount_scratch
from ansible.module_utils.supervision import FAILURE_LIMIT, last_words, text_of

DOCUMENTATION = """
module: daemon
short_description: start a program that outlives the play, or stop it
options:
  name:
    description: Its name in the directory; several can be stopped at once, in this order.
    type: list
    elements: str
    required: true
  directory:
    description: Where its files are; made if missing.
    type: path
    required: true
  state:
    description: Whether it shall run.
    choices: [started, stopped]
    default: started
  argv:
    description: The command, a list of words.
    type: list
    elements: str
  files:
    description: Files to write into the directory first, name to text.
    type: dict
    default: {}
  uid:
    description: User and group id to run as, in a sandbox; it cannot be started without.
    type: int
  reads:
    description: Files and directories that a program in a sandbox sees, besides those of C(files).
    type: list
    elements: str
    default: []
  devices:
    description: Devices that a program in a sandbox may open.
    type: list
    elements: str
    default: []
  network:
    description: The network of a program in a sandbox, C(none), C(host), or the file of a network namespace.
    type: str
    default: host
  cpus:
    description: CPUs that it may run on; all when empty.
    type: list
    elements: int
    default: []
  ready:
    description: A regular expression; the program is ready when a line of the log matches it. Without one the
      program is ready when it runs.
    type: str
  timeout:
    description: Seconds until it must be ready, or must have ended after SIGTERM. One that is not ready in time
      is left running, so that C(thread_states) can query it before it is stopped.
    type: float
    default: 10
"""

RETURN = """
pid:
  description: Its process id.
  type: int
command:
  description: The executed command, without that of the sandbox.
  type: list
log:
  description: What it has printed so far.
  type: str
seconds:
  description: Seconds until it was ready.
  type: float
ended:
  description: The result of each stopped program by name. C(exit_status) is 128 plus the number of the signal that
    ended it, or null if it is unknown; C(crashed) is true if it ended before SIGTERM; C(log) is its output.
  type: dict
"""

LOG_LIMIT = 1024 * 1024
"""Max bytes of a log that are returned."""

# The shell stays as the parent, which gets the exit status. The inner shell writes its process id before it becomes the
# program.
KEEPER = """\
sh -c 'echo $$ >"$0.child" && exec "$@"' "$0" "$@" >"$0.log" 2>&1 &
wait $!
echo $? >"$0.exit.new" && mv "$0.exit.new" "$0.exit"
"""


def _file(base: Path, suffix: str) -> Path:
    return base.with_name(base.name + suffix)


def _log(path: Path) -> str:
    try:
        with path.open("rb") as file:
            text: str = text_of(file, LOG_LIMIT)
    except FileNotFoundError:
        return ""
    return text


def _read_number(path: Path) -> int | None:
    try:
        return int(path.read_text(encoding="ascii"))
    except (FileNotFoundError, ValueError):
        return None


def _pinning(cpus: list[int]) -> list[str]:
    return ["taskset", "-c", ",".join(map(str, cpus))] if cpus else []


def _sandbox(params: dict[str, Any], base: Path) -> Sandbox:
    files, own = [str(base.with_name(name)) for name in params["files"]], str(_file(base, ".own"))
    return Sandbox(
        params["uid"], reads=[*files, *params["reads"]], writes={own: own},
        devices=params["devices"], network=params["network"],
    )  # fmt: skip


def _prepare_directory(params: dict[str, Any], base: Path) -> None:
    directory = beneath.absolute(params["directory"])
    with beneath.directory("/", directory, make=True):
        for name, text in params["files"].items():
            beneath.write_text("/", f"{directory}/{name}", text, make=True)
    mount_scratch(_file(base, ".own"), params["uid"])
    for suffix in (".log", ".exit", ".child"):
        _file(base, suffix).unlink(missing_ok=True)


def _wait_ready(module: Module, base: Path, deadline: float) -> str:
    """Waits until the program reports that it is ready; returns the log."""
    log_file, exit_file = _file(base, ".log"), _file(base, ".exit")
    pattern = re.compile(module.params["ready"] or "", re.MULTILINE)
    while True:
        ended = _read_number(exit_file)
        log = _log(log_file)
        details = {"log": log[-FAILURE_LIMIT:]}
        if ended is not None:
            module.fail_json(
                msg=f"{base.name} ended with status {ended}:\n{last_words(log)}", exit_status=ended, **details
            )
        if pattern.search(log):
            return log
        if time.monotonic() > deadline:
            limit = module.params["timeout"]
            why = f"was not ready after {limit:g} s; its last lines:\n{last_words(log)}"
            module.fail_json(msg=f"{base.name} {why}", **details)
        time.sleep(0.01)


def start(module: Module, base: Path) -> dict[str, Any]:
    """Starts the program and waits until it is ready."""
    params, begin = module.params, time.monotonic()
    deadline = begin + params["timeout"]
    pid_file = _file(base, ".pid")
    if running(pid_file):
        module.fail_json(msg=f"{base.name} runs already in {base.parent}: stop it first")
    _prepare_directory(params, base)
    pinning = _pinning(params["cpus"])
    argv = ["sh", "-c", KEEPER, str(base), *pinning, *confined(params["argv"], _sandbox(params, base))]
    keeper = spawn(argv, pid_file=pid_file, log=_file(base, ".keeper"), cwd=base.parent)
    while (child := _program(base)) is None and keeper.alive():
        time.sleep(0.002)
    if child is not None:
        write_pid_file(pid_file, child)
    elif _read_number(_file(base, ".child")) is None:
        module.fail_json(msg=f"{base.name} was not started, for its number could not be written: is the disk full?")
    log = _wait_ready(module, base, deadline)
    pid = child.pid if child else None
    return {
        "changed": True,
        "pid": pid,
        "command": [*pinning, *params["argv"]],
        "log": log,
        "seconds": time.monotonic() - begin,
    }


def _program(base: Path) -> Process | None:
    """Returns the program itself, which the first process of its sandbox, bwrap's own, has started."""
    pid = _read_number(_file(base, ".child"))
    return None if pid is None else next(iter(descendants({pid})[1:]), None)


def end(base: Path, grace: float) -> dict[str, Any] | None:
    """Stops a program and returns its exit status and log; None if it does not exist."""
    pid_file = _file(base, ".pid")
    recorded = read_pid_file(pid_file)
    if recorded is None:
        return None
    crashed = not recorded.alive()
    if not crashed:
        _terminate(base, recorded, grace)
    kill_session(recorded)
    unmount_scratch(_file(base, ".own"))
    pid_file.unlink(missing_ok=True)
    return {"exit_status": _read_number(_file(base, ".exit")), "crashed": crashed, "log": _log(_file(base, ".log"))}


def _terminate(base: Path, process: Process, grace: float) -> None:
    """Sends SIGTERM, then SIGKILL, to the program alone, so that its parent can write the status."""
    signal_process(process, signal.SIGTERM)
    if not wait_until_gone(process, grace):
        signal_process(process, signal.SIGKILL)
        wait_until_gone(process, 5)
    deadline = time.monotonic() + 1
    while not _file(base, ".exit").exists() and time.monotonic() < deadline:
        time.sleep(0.002)


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "name": {"required": True},
            "directory": {"required": True},
            "state": {"default": "started"},
            "argv": {},
            "files": {"default": {}},
            "uid": {},
            "reads": {"default": []},
            "devices": {"default": []},
            "network": {"default": HOST_NETWORK},
            "cpus": {"default": []},
            "ready": {},
            "timeout": {"default": 10},
        },
        required_if=[("state", "started", ["argv", "uid"])],
    )
    params = checked(module, "daemon")
    directory, names = Path(params["directory"]), params["name"]
    names = [names] if isinstance(names, str) else names
    try:
        if module.params["state"] == "started":
            result = start(module, directory / names[0])
        else:
            endings = {name: end(directory / name, module.params["timeout"]) for name in names}
            ended = {name: ending for name, ending in endings.items() if ending is not None}
            result = {"changed": bool(ended), "ended": ended}
    except (OSError, RuntimeError, ValueError) as error:
        module.fail_json(msg=f"{names[0]} in {directory}: {error}")
    module.exit_json(**result)


if __name__ == "__main__":
    main()
