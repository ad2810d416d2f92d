# SPDX-License-Identifier: BSD-2-Clause
"""Runs scripts of packetdrill against the stack: python -m tests.stack.packetdrill PROGRAM FOLDER [NAME ...].

PROGRAM is packetdrill, FOLDER a tree of scripts (gtests/net of its sources), NAME a part of the path of selected ones.
Each script has a separate stack, configured by the stack's sysctl. stack/tests/packetdrill.md has the expected results.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.stack.topology import Installed

WAIT = 60  # virtual hours pass in no time, so a longer script hangs
LOCAL = "192.168.0.1"
QUICKACKS = 16  # as Linux acknowledges the first segments of a connection
NOISE = ("stack: ", "sysctl: ")  # knobs of Linux that the stack does not have

# The scripts' own program writes to /proc/sys, which belongs to the host, and writes a script that undoes it.
SET_SYSCTLS = """#!/bin/sh
undo=/tmp/sysctl_restore_$PACKETDRILL_PID.sh
printf '#!/bin/sh\\nrm -f "$0"\\n' >"$undo"
chmod +x "$undo"
for setting; do sysctl -q "${setting#/proc/sys/}"; done
exit 0
"""


def prepare(scripts: Path, installed: Installed, room: Path) -> Path:
    """Copy the scripts so that they configure the stack instead of the host; its programs are in room/bin."""
    copy = room / "scripts"
    shutil.copytree(scripts, copy)
    for path in copy.rglob("set_sysctls.py"):
        path.unlink()
        path.write_text(SET_SYSCTLS)
        path.chmod(0o755)
    programs = room / "bin"
    programs.mkdir()
    (programs / "sysctl").symlink_to(installed.prefix / "libexec" / "stack" / "sysctl")
    for name in ("ip", "tc"):  # they set up a tun device, which does not exist here
        (programs / name).symlink_to("/bin/true")
    return copy


def run(program: str, script: Path, installed: Installed, room: Path) -> str | None:
    """Run a script; return None if it passes, or the first line of the error."""
    library = installed.prefix / "lib" / "libstack_packetdrill.so"
    control = room / "control"
    environment = {
        **os.environ,
        "PATH": f"{room / 'bin'}:{os.environ['PATH']}",
        "STACK_CTL": str(control),
        "LD_PRELOAD": str(library),  # for TCP_INFO in Python blocks, and sendfile
    }
    flags = f"inet={LOCAL}/16 ctl.path={control} net.inet.tcp.quickacks={QUICKACKS}"
    command = [program, f"--local_ip={LOCAL}", f"--so_filename={library}", f"--so_flags={flags}", script.name]
    try:
        done = subprocess.run(
            command, cwd=script.parent, env=environment, capture_output=True, text=True, timeout=WAIT, check=False
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {WAIT} seconds"
    if done.returncode == 0:
        return None
    lines = [line for line in (done.stderr + done.stdout).splitlines() if not line.startswith(NOISE)]
    return lines[0] if lines else f"status {done.returncode}"


def main(program: str, folder: str, *names: str) -> int:
    """Print a line for each script; return 1 if one fails."""
    installed = Installed()
    failed = passed = 0
    with tempfile.TemporaryDirectory(prefix="packetdrill-") as room:
        scripts = prepare(Path(folder), installed, Path(room))
        for script in sorted(scripts.rglob("*.pkt")):
            name = str(script.relative_to(scripts))
            if names and not any(part in name for part in names):
                continue
            wrong = run(str(Path(program).resolve()), script, installed, Path(room))
            failed += wrong is not None
            passed += wrong is None
            print("pass" if wrong is None else "FAIL", name, wrong or "", flush=True)
    installed.remove()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
