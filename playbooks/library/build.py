#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Builds the stack from an archive once, under a name that stands for its content.

The tree appears under its name only when it is complete: everything happens in
a directory beside it, which is renamed at the end.  So an interrupted build
leaves nothing that could be taken for one.
"""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.supervision import ControllerGoneError, run_once

DOCUMENTATION = """
module: build
short_description: build and install the stack once
options:
  root:
    description: The directory of all builds on this host.
    type: path
    required: true
  key:
    description: The name of this build; a hash of its sources and options.
    type: str
    required: true
  archive:
    description: A tar.gz of the sources on this host; it is removed after a build.
    type: path
    required: true
  meson:
    description: The meson to use.
    type: str
    required: true
  options:
    description: Options of meson setup.
    type: list
    elements: str
    default: []
  timeout:
    description: Seconds for each of the steps.
    type: float
    required: true
"""

RETURN = """
prefix:
  description: Where it is installed.
  type: str
cached:
  description: Whether it had been built before.
  type: bool
build_log:
  description: What the build printed, also when it was made before.
  type: str
seconds:
  description: How long it took.
  type: float
"""

MARKS = ("meson.build", "stack/meson.build")


def find_sources(directory: Path) -> Path:
    """The directory with meson.build: the archive may hold the files themselves or one directory of them."""
    for mark in MARKS:
        if (directory / mark).exists():
            return (directory / mark).parent
    raise ValueError(f"the archive has neither {' nor '.join(MARKS)}: make it of the directory stack/")


def steps(params: dict[str, Any], work: Path, prefix: Path) -> list[list[str]]:
    """The commands of a build, which installs below work/installed."""
    meson, build = params["meson"], str(work / "build")
    setup = [meson, "setup", build, str(find_sources(work / "source")), "--prefix", str(prefix), "--libdir", "lib"]
    options = list(params["options"])
    if not any(option.startswith(("-Dbuildtype=", "--buildtype")) for option in options):
        options.append("-Dbuildtype=release")
    install = [meson, "install", "-C", build, "--destdir", str(work / "installed")]
    return [[*setup, *options], [meson, "compile", "-C", build], install]


def make(module: AnsibleModule, prefix: Path) -> str:
    """Builds in a directory beside the prefix and moves the result there; returns the log."""
    params = module.params
    work = prefix.with_name(prefix.name + ".new")
    shutil.rmtree(work, ignore_errors=True)
    (work / "source").mkdir(parents=True)
    try:
        unpack = ["tar", "--extract", "--gzip", "--no-same-owner", "--file", params["archive"]]
        subprocess.run([*unpack, "--directory", str(work / "source")], check=True, capture_output=True, text=True)
        log = ""
        for argv in steps(params, work, prefix):
            done = run_once(argv, timeout=params["timeout"], directory=str(work), pid_directory=str(work))
            log += f"$ {' '.join(argv)}\n{done['stdout']}{done['stderr']}"
            if done["rc"] != 0 or done["timed_out"]:
                why = f"after {params['timeout']:g} s" if done["timed_out"] else f"with status {done['rc']}"
                last = "\n".join(log.splitlines()[-20:])
                module.fail_json(msg=f"`{argv[0]} {argv[1]}` ended {why}:\n{last}", build_log=log)
        installed = work / "installed" / prefix.relative_to("/")
        (installed / "build.log").write_text(log, encoding="utf-8")
        installed.rename(prefix)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return log


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec={
            "root": {"type": "path", "required": True},
            "key": {"type": "str", "required": True},
            "archive": {"type": "path", "required": True},
            "meson": {"type": "str", "required": True},
            "options": {"type": "list", "elements": "str", "default": []},
            "timeout": {"type": "float", "required": True},
        },
    )
    begin = time.monotonic()
    prefix = Path(module.params["root"]) / module.params["key"]
    try:
        # Hosts of a lab on one machine share this directory.
        with (prefix.parent / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            cached = prefix.is_dir()
            log = (prefix / "build.log").read_text(encoding="utf-8") if cached else make(module, prefix)
    except subprocess.CalledProcessError as error:
        module.fail_json(msg=f"the archive could not be unpacked: {error.stderr.strip()}")
    except (OSError, ValueError) as error:
        module.fail_json(msg=f"the build could not be made: {error}")
    except ControllerGoneError:
        raise SystemExit(1) from None
    Path(module.params["archive"]).unlink(missing_ok=True)
    module.exit_json(
        changed=not cached, prefix=str(prefix), cached=cached, build_log=log, seconds=time.monotonic() - begin
    )


if __name__ == "__main__":
    main()
