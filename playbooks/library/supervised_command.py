#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Runs commands one after the other and keeps everything they say.

This is how samples are taken: one command after the other, each so many times,
each pinned, under a time limit of its own, and killed with everything it
started when the limit is over or when the controller has gone away.  It never
fails because a command fails; what that means is the business of the caller,
who gets status and output of every one.  A command that was told to come again,
because its server is not done with the one before, comes again.  Commands that
run as somebody else than root are each in a sandbox of their own.  Before and
after each sample the host is looked at, where that is asked for: what has
disturbed it is handed back with it.
"""

from __future__ import annotations

import contextlib
import ctypes
import glob
import os
import tempfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.ethtool import pause_frames
from ansible.module_utils.gauges import Observer, between
from ansible.module_utils.processes import read_pid_file
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
  samples:
    description: How often each command runs, one after the other.
    type: int
    default: 1
  timeout:
    description: Seconds that one command may take.
    type: float
    required: true
  busy:
    description: Text in the output of a command that was told to come again; no text is looked for when empty.
    type: str
    default: ""
  patience:
    description: Seconds for which a command comes again; then its last answer stands.
    type: float
    default: 0
  cpus:
    description: CPUs that the commands may run on; all when empty.
    type: list
    elements: int
    default: []
  uid:
    description: User and group id to run as, in a sandbox; root if not given, and then in none.
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
  environment:
    description: Variables of commands in a sandbox.
    type: dict
    default: {}
  pid_directory:
    description: Where a pid file lies as long as a command runs.
    type: path
  observe:
    description: Has the host looked at before and after each sample. C(interfaces) are its data links, C(own) is a
      pattern of the pid files of what else belongs to the run, such as a server.
    type: dict
"""

RETURN = """
results:
  description: For every command its C(argv), C(cpus) and its C(samples); a sample has C(rc) (negative is the number of
    the signal that ended it), C(stdout), C(stderr), C(started) (seconds since 1970), C(seconds), C(timed_out),
    C(refused), how often it was told to come again before, and where it was observed C(gauges), by the names of
    UNITS in module_utils/gauges.py.
  type: list
  returned: always
"""

PR_SET_CHILD_SUBREAPER = 36  # prctl(2): orphans among its descendants become this process's children
PAUSE_SECONDS = 0.2
"""Before a command comes again."""


def run_patiently(argv: list[str], busy: str, patience: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Runs a command until its answer has no text that says `busy`, or for `patience` seconds and once at least."""
    deadline = time.monotonic() + patience
    refused = 0
    while True:
        sample = run_once(argv, **settings)
        if not busy or busy not in sample["stdout"] + sample["stderr"] or time.monotonic() >= deadline:
            return {**sample, "refused": refused}
        refused += 1
        time.sleep(PAUSE_SECONDS)


def run_samples(
    argv: list[str], params: dict[str, Any], settings: dict[str, Any], observer: Observer | None
) -> list[dict[str, Any]]:
    """Runs a command as often as asked; the end of one sample is the beginning of the next, so one look is for both."""
    samples = []
    before = _look(observer) if observer else None
    for _ in range(params["samples"]):
        sample = run_patiently(_words(argv, params), params["busy"], params["patience"], settings)
        if observer:
            after = _look(observer)
            sample["gauges"] = between(before, after)
            before = after
        samples.append(sample)
    return samples


def run_all(params: dict[str, Any]) -> list[dict[str, Any]]:
    """Runs every command as often as asked and returns what RETURN describes."""
    if params["cpus"]:
        os.sched_setaffinity(0, params["cpus"])
    observer = _observer(params)
    settings = {
        "timeout": params["timeout"],
        "directory": "/",
        "pid_directory": params["pid_directory"] or tempfile.gettempdir(),
    }
    return [
        {
            "argv": argv,
            "cpus": sorted(os.sched_getaffinity(0)),
            "samples": run_samples(argv, params, settings, observer),
        }
        for argv in params["commands"]
    ]


def _look(observer: Observer) -> Any:
    """Looks when the orphans that have ended are buried: their time is this process's children's then."""
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    return observer.look()


def _observer(params: dict[str, Any]) -> Observer | None:
    """Somebody who looks at this host, if anybody shall."""
    if not params["observe"]:
        return None
    # A sandbox's first process outlives the one that was waited for by a moment, and with it goes the tool's time.
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    files = glob.glob(params["observe"].get("own") or "")
    own = {number for file in files if (found := read_pid_file(Path(file))) for number in (found.pid, found.session)}
    return Observer(params["observe"].get("interfaces") or [], params["cpus"], own, pause_frames)


def _words(argv: list[str], params: dict[str, Any]) -> list[str]:
    if params["uid"] is None:
        return argv
    reads, network, environment = params["reads"], params["network"], params["environment"]
    words: list[str] = confined(argv, Sandbox(params["uid"], reads=reads, network=network, environment=environment))
    return words


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "commands": {"type": "list", "elements": "list", "required": True},
            "samples": {"type": "int", "default": 1},
            "timeout": {"type": "float", "required": True},
            "busy": {"type": "str", "default": ""},
            "patience": {"type": "float", "default": 0},
            "cpus": {"type": "list", "elements": "int", "default": []},
            "uid": {"type": "int"},
            "reads": {"type": "list", "elements": "str", "default": []},
            "network": {"type": "str", "default": HOST_NETWORK},
            "environment": {"type": "dict", "default": {}},
            "pid_directory": {"type": "path"},
            "observe": {"type": "dict"},
        },
    )
    params = module.params
    params["commands"] = [[str(word) for word in argv] for argv in params["commands"]]
    if not all(params["commands"]):
        module.fail_json(msg="an empty command: give at least the name of a program")
    try:
        results = run_all(params)
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the commands could not be run: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    module.exit_json(changed=True, results=results)


if __name__ == "__main__":
    main()
