#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Checks whether a host is fit for a run: disk space, its data links, no remains of another run.

The module changes nothing. A problem does not fail the module; the caller decides what follows from it.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import running

DOCUMENTATION = """
module: host_health
short_description: look for what keeps a run from a host
options:
  root:
    description: The directory of all runs on this host.
    type: path
    required: true
  builds:
    description: The directory of builds on this host.
    type: path
    required: true
  group:
    description: The group of the host, with which the directories of its runs end.
    type: str
    required: true
  links:
    description: The interfaces of the data links.
    type: list
    elements: str
    required: true
  namespace:
    description: A file that is the stack's network namespace while a stack has the links.
    type: path
    required: true
  min_free_mb:
    description: Megabytes that must be free for runs and for builds.
    type: int
    required: true
"""

RETURN = """
facts:
  description: Free megabytes by directory, and the load of the last minute.
  type: dict
problems:
  description: What is wrong, in words; empty where the host is fit.
  type: list
"""

MEGABYTE = 1 << 20


def free_megabytes(directory: Path) -> int:
    """Returns the free space where a directory is, or will be made."""
    there = next(place for place in (directory, *directory.parents) if place.exists())
    return shutil.disk_usage(there).free // MEGABYTE


def still_running(root: Path, group: str) -> list[str]:
    """Returns the run directories on this host that still have running processes."""
    runs = sorted(root.glob(f"*-{group}"))
    return [run.name for run in runs if any(map(running, [*run.glob("*.pid"), *run.glob("*/*.pid")]))]


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "root": {"required": True},
            "builds": {"required": True},
            "group": {"required": True},
            "links": {"required": True},
            "namespace": {"required": True},
            "min_free_mb": {"required": True},
        },
        supports_check_mode=True,
    )
    params: dict[str, Any] = checked(module, "host_health")
    root, namespace, required = Path(params["root"]), Path(params["namespace"]), params["min_free_mb"]
    free = {str(place): free_megabytes(place) for place in (root, Path(params["builds"]))}
    scarce = {place: found for place, found in free.items() if found < required}
    problems = [f"{found} MB are free for {place}, {required} are needed" for place, found in scarce.items()]
    problems += [f"{run} has left something running" for run in still_running(root, params["group"])]
    if os.path.ismount(namespace):
        problems.append(f"a stack has the data links still: {namespace} is a network namespace")
    else:
        missing = [link for link in params["links"] if module.run_command(["ip", "link", "show", "dev", link])[0] != 0]
        problems += [f"there is no data link {link}" for link in missing]
    module.exit_json(changed=False, problems=problems, facts={"free_mb": free, "load": os.getloadavg()[0]})


if __name__ == "__main__":
    main()
