#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes the directory of a run on a host, or ends all processes of the run and removes it.

Everything that a run starts has a pid file somewhere in the directory, so a run can be removed even if the play that
started something has crashed.
"""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from ansible.module_utils import beneath
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.processes import stop
from ansible.module_utils.sandbox import unmount_scratch

DOCUMENTATION = """
module: run_directory
short_description: make or remove the directory of a run
options:
  root:
    description: The directory of all runs on this host.
    type: path
    required: true
  name:
    description: The name of the run.
    type: str
    required: true
  state:
    description: Whether it shall be there.
    choices: [present, absent]
    default: present
"""

RETURN = """
stopped:
  description: Pid files of processes that still ran and were stopped.
  type: list
"""


def require_own(root: Path) -> None:
    """Refuses a directory that another user could write to, at any level of its path."""
    root.mkdir(mode=0o755, parents=True, exist_ok=True)
    for directory in (root, *root.parents):
        status = directory.lstat()
        sticky = directory != root and status.st_mode & stat.S_ISVTX
        if not stat.S_ISDIR(status.st_mode) or status.st_uid not in {0, os.geteuid()}:
            raise PermissionError(f"{directory} belongs to another user: remove it")
        if status.st_mode & 0o022 and not sticky:
            raise PermissionError(f"{directory} can be changed by others: correct its mode, or remove it")


def remove(directory: Path) -> list[str]:
    """Stops the processes of the run and deletes the tree; returns the pid files of the stopped ones.

    The directories that programs can write to are not searched: a pid file there could name any process of the host.
    """
    pid_files = sorted([*directory.glob("*.pid"), *directory.glob("*/*.pid")])
    stopped = [str(path) for path in pid_files if stop(path, grace=1)]
    for own in directory.glob("*/*.own"):
        unmount_scratch(own)
    if directory.exists():
        shutil.rmtree(directory)
    return stopped


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "root": {"required": True},
            "name": {"required": True},
            "state": {"default": "present"},
        },
    )
    params = checked(module, "run_directory")
    root, name = Path(params["root"]), params["name"]
    try:
        require_own(root)
        if params["state"] == "absent":
            stopped = remove(root / name)
            module.exit_json(changed=bool(stopped), stopped=stopped)
        with beneath.directory("/", beneath.absolute(root / name), make=True):
            pass
    except OSError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=True, stopped=[])


if __name__ == "__main__":
    main()
