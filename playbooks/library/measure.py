#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Takes the samples of a boot: all of them, test by test, each told to the controller as soon as it is there.

A sample is one run of a command: pinned, under a time limit of its own, and
killed with everything it started when the limit is over or when the controller
has gone away.  A command that was told to come again, because its server is not
done with the one before, comes again.  Each is in a sandbox of its own.  Before and after each sample the host
is looked at: what has disturbed it comes with it, and one that something foreign
disturbed is void and taken again.

What is told is a line of JSON after a record separator (RFC 7464) on standard
output, which `playbooks/tell` keeps from Ansible.  It never fails because a
command fails; but a measurement with a sample that failed is the last one here,
as whoever serves may be dead.
"""

from __future__ import annotations

import glob
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.cpuspeed import Slowdown
from ansible.module_utils.ethtool import pause_frames
from ansible.module_utils.gates import Taking
from ansible.module_utils.gauges import Observer, between
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import read_pid_file
from ansible.module_utils.sandbox import Sandbox, confined
from ansible.module_utils.supervision import ControllerGoneError, run_once

DOCUMENTATION = """
module: measure
short_description: take samples and tell each at once
options:
  measurements:
    description: "In this order. Of each C(test), its name; C(argv), the command, a list of words; C(samples), how many
      count; and perhaps C(discard), how many of warm-up come before (0); C(voids_allowed), how many void ones are taken
      again (0); C(busy), text in the output of a command that was told to come again; C(patience), seconds for which it
      does (0), then its last answer stands."
    type: list
    elements: dict
    required: true
  timeout:
    description: Seconds that one command may take.
    type: float
    required: true
  limits:
    description: The gates that are on, by their names in module_utils/gates.py, and what is above voids.
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
    description: Where a pid file lies as long as a command runs, and the best speed of the CPUs as long as the run.
    type: path
    required: true
  interfaces:
    description: The data links of this host, to look at.
    type: list
    elements: str
    default: []
  own:
    description: A pattern of the pid files of what else belongs to the run, such as a server.
    type: str
    default: ""
"""

RETURN = """
well:
  description: Whether each sample went well; after a test with one that did not nothing is measured.
  type: bool
  returned: always
told:
  description: "On the way, when a measurement begins and with each sample: C(test), C(left), how many samples are to
    come, and C(sample) with C(rc) (negative is the number of the signal that ended it), C(stdout), C(stderr),
    C(started) (seconds since 1970), C(seconds), C(timed_out), C(refused), how often it was told to come again before,
    C(gauges), by the names of UNITS in module_utils/gauges.py, and C(void), why it is, or an empty text."
"""

PAUSE_SECONDS = 0.2
"""Before a command comes again."""
RECORD_SEPARATOR = "\x1e"


def tell(**values: Any) -> None:
    """A line to the controller, now."""
    sys.stdout.write(f"{RECORD_SEPARATOR}{json.dumps(values)}\n")
    sys.stdout.flush()


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


class Sampler:
    """Takes samples on this host; the end of one is the beginning of the next, so one look is for both."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.params = params
        self.settings = {"timeout": params["timeout"], "directory": "/", "pid_directory": params["pid_directory"]}
        self.observer = _observer(params)

    def measure(self, measurement: dict[str, Any]) -> bool:
        """Takes all samples of one test and tells them; returns whether each of them went well."""
        test, argv = measurement["test"], measurement["argv"]
        busy, patience = measurement["busy"], measurement["patience"]
        taking = Taking(
            measurement["samples"], measurement["discard"], self.params["limits"], measurement["voids_allowed"]
        )
        tell(test=test, left=taking.left)
        before = self.observer.look()
        while taking.left:
            sample = run_patiently(self.words(argv), busy, patience, self.settings)
            after = self.observer.look()
            sample["gauges"] = between(before, after)
            sample["void"] = taking.judge(sample)
            tell(test=test, left=taking.left, sample=sample)
            before = after
        return not taking.failed

    def words(self, argv: list[str]) -> list[str]:
        """The command in its sandbox."""
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
    """Measures in order until one has failed; returns whether none has."""
    if params["cpus"]:
        os.sched_setaffinity(0, params["cpus"])
    sampler = Sampler(params)
    return all(sampler.measure(measurement) for measurement in params["measurements"])


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "measurements": {
                "type": "list",
                "elements": "dict",
                "required": True,
                "options": {
                    "test": {"type": "str", "required": True},
                    "argv": {"type": "list", "elements": "str", "required": True},
                    "samples": {"type": "int", "required": True},
                    "discard": {"type": "int", "default": 0},
                    "voids_allowed": {"type": "int", "default": 0},
                    "busy": {"type": "str", "default": ""},
                    "patience": {"type": "float", "default": 0},
                },
            },
            "timeout": {"type": "float", "required": True},
            "limits": {"type": "dict", "default": {}},
            "cpus": {"type": "list", "elements": "int", "default": []},
            "uid": {"type": "int", "required": True},
            "reads": {"type": "list", "elements": "str", "default": []},
            "environment": {"type": "dict", "default": {}},
            "pid_directory": {"type": "path", "required": True},
            "interfaces": {"type": "list", "elements": "str", "default": []},
            "own": {"type": "str", "default": ""},
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
