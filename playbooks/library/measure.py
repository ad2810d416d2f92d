#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes all samples of a boot, test by test, and reports each to the controller as soon as it is complete.

A sample is one run of a command: pinned to CPUs, in a sandbox of its own, with a time limit. It is killed with
everything it started when the time is up or the controller disconnects. If the server is still busy with the command
before, the command is repeated. The host is observed before and after each sample, and the sample carries what
disturbed it. A sample that was disturbed from outside is void and is taken again.

A report is a line of JSON after a record separator (RFC 7464) on standard output, which `playbooks/report` keeps from
Ansible. The module never fails because a command fails. But a measurement with a failed sample is the last one here,
because the server may be dead.
"""

from __future__ import annotations

import glob
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.cpuspeed import Slowdown
from ansible.module_utils.ethtool import pause_frames
from ansible.module_utils.gates import Taking
from ansible.module_utils.gauges import Observer, between
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import read_pid_file
from ansible.module_utils.sandbox import Sandbox, confined
from ansible.module_utils.supervision import ControllerGoneError, run_once

DOCUMENTATION = """
module: measure
short_description: take samples and report each at once
options:
  measurements:
    description: "The measurements in order. Each has C(test), its name; C(argv), the command, a list of words; and
      C(samples), the number of samples that count. Optional are C(discard), the number of warm-up samples before (0);
      C(voids_allowed), the max number of void samples that are repeated (0); C(busy), texts in the output of a
      command that a busy server refused; C(patience), the max seconds for which it is repeated (0)."
    type: list
    elements: dict
    required: true
  timeout:
    description: Seconds that one command may take.
    type: float
    required: true
  limits:
    description: The limits of the enabled gates, by their names in module_utils/gates.py.
    type: dict
    default: {}
  cpus:
    description: CPUs that the commands may run on; all when empty.
    type: list
    elements: int
    default: []
  uid:
    description: User and group id to run as, in a sandbox.
    type: int
    required: true
  reads:
    description: Files and directories that commands in a sandbox see.
    type: list
    elements: str
    default: []
  environment:
    description: Variables of commands in a sandbox.
    type: dict
    default: {}
  pid_directory:
    description: The directory of the pid file of a running command, and of the best speed of the CPUs during the run.
    type: path
    required: true
  interfaces:
    description: The observed data links of this host.
    type: list
    elements: str
    default: []
  own:
    description: A pattern of the pid files of other processes of the run, such as a server.
    type: str
    default: ""
"""

RETURN = """
well:
  description: Whether all samples succeeded; after a test with a failed sample nothing is measured.
  type: bool
  returned: always
reports:
  description: "Reports at the start of a measurement and after each sample. Each has C(test), C(left), the number of
    remaining samples, and C(sample). A sample has C(rc) (negative is the number of the signal that ended it),
    C(stdout), C(stderr), C(started) (seconds since 1970), C(seconds), C(timed_out), C(refused), the number of
    refusals by a busy server, C(gauges), by the names of UNITS in module_utils/gauges.py, and C(void), the reason
    or an empty text."
"""

PAUSE_SECONDS = 0.2
"""Seconds before a command is repeated."""
RECORD_SEPARATOR = "\x1e"
OPTIONAL: dict[str, Any] = {"discard": 0, "voids_allowed": 0, "busy": [], "patience": 0}
"""What a measurement may leave out."""


def report(**values: Any) -> None:
    """Sends a line to the controller, unbuffered."""
    sys.stdout.write(f"{RECORD_SEPARATOR}{json.dumps(values)}\n")
    sys.stdout.flush()


def run_patiently(argv: list[str], busy: list[str], patience: float, settings: dict[str, Any]) -> dict[str, Any]:
    """Runs a command until its output has none of the texts `busy`, for at most `patience` seconds, at least once."""
    deadline = time.monotonic() + patience
    refused = 0
    while True:
        sample = run_once(argv, **settings)
        output = sample["stdout"] + sample["stderr"]
        if not any(text in output for text in busy) or time.monotonic() >= deadline:
            return {**sample, "refused": refused}
        refused += 1
        time.sleep(PAUSE_SECONDS)


class Sampler:
    """Takes samples on this host; the end of one is the start of the next, so they share an observation."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.settings = {"timeout": params["timeout"], "directory": "/", "pid_directory": params["pid_directory"]}
        self.observer = _observer(params)

    def measure(self, measurement: dict[str, Any]) -> bool:
        """Takes and reports all samples of one test; returns whether all of them succeeded."""
        measurement = OPTIONAL | measurement
        test, argv = measurement["test"], measurement["argv"]
        busy, patience = measurement["busy"], measurement["patience"]
        taking = Taking(
            measurement["samples"], measurement["discard"], self.params["limits"], measurement["voids_allowed"]
        )
        report(test=test, left=taking.left)
        before = self.observer.look()
        while taking.left:
            sample = run_patiently(self.words(argv), busy, patience, self.settings)
            after = self.observer.look()
            sample["gauges"] = between(before, after)
            sample["void"] = taking.judge(sample)
            report(test=test, left=taking.left, sample=sample)
            before = after
        return not taking.failed

    def words(self, argv: list[str]) -> list[str]:
        """Returns the command in its sandbox."""
        box = Sandbox(
            self.params["uid"], reads=self.params["reads"], network="host", environment=self.params["environment"]
        )
        words: list[str] = confined(argv, box)
        return words


def _observer(params: dict[str, Any]) -> Observer:
    files = glob.glob(params["own"])
    own = {number for file in files if (found := read_pid_file(Path(file))) for number in (found.pid, found.session)}
    slowdown = Slowdown(Path(params["pid_directory"], "best-cpu-speed"))
    wanted = "slowdown" in params["limits"]
    return Observer(params["interfaces"], params["cpus"], own, pause_frames, slowdown.look if wanted else None)


def measure_all(params: dict[str, Any]) -> bool:
    """Measures in order until one fails; returns whether none did."""
    if params["cpus"]:
        os.sched_setaffinity(0, params["cpus"])
    sampler = Sampler(params)
    return all(sampler.measure(measurement) for measurement in params["measurements"])


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "measurements": {"required": True},
            "timeout": {"required": True},
            "limits": {"default": {}},
            "cpus": {"default": []},
            "uid": {"required": True},
            "reads": {"default": []},
            "environment": {"default": {}},
            "pid_directory": {"required": True},
            "interfaces": {"default": []},
            "own": {"default": ""},
        },
    )
    try:
        well = measure_all(checked(module, "measure"))
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the commands could not be run: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    module.exit_json(changed=True, well=well)


if __name__ == "__main__":
    main()
