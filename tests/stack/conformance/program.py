# SPDX-License-Identifier: BSD-2-Clause
"""Runs packetdrill scripts against the stack: `./dev conformance [FOLDER ...]`.

Each script has a separate stack in virtual time. The result is a line for each, and with --json a list of objects:

    {"script": "NAME", "result": "pass" | "fail", "clauses": ["RFC 9293 3.8.4", ...], "error": null | "first line"}

The clauses are those that the comments of the script name. stack/tests/packetdrill.md has the expected results.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from tests.stack.builds import ROOT
from tests.stack.topology import Installed

OWN = ROOT / "stack" / "tests" / "packetdrill"
WAIT = 60  # virtual hours pass in no time, so a longer script hangs
LOCAL = "192.168.0.1"
LIBRARY = "libstack_packetdrill.so"
NOISE = ("stack: ", "sysctl: ")  # knobs of Linux that the stack does not have

# What differs between systems: the tunables with which the stack behaves like one of them.
PERSONALITIES: dict[str, dict[str, int]] = {
    "default": {},
    "linux": {
        "net.inet.tcp.quickacks": 16,
        "net.inet.tcp.tlp_ackdelay": 200,
        "net.inet.tcp.tolerate_missing_ts": 1,
    },
}

# The scripts' own program writes to /proc/sys, which belongs to the host, and writes a script that undoes it.
SET_SYSCTLS = """#!/bin/sh
undo=/tmp/sysctl_restore_$PACKETDRILL_PID.sh
printf '#!/bin/sh\\nrm -f "$0"\\n' >"$undo"
chmod +x "$undo"
for setting; do sysctl -q "${setting#/proc/sys/}"; done
exit 0
"""

_RFC = re.compile(r"RFC (\d+)")
_CLAUSE = re.compile(r" ?(?:sections? )?(\d+(?:\.\d+)*|(?:MUST|SHLD|MAY)-\d+)\b(?:,| and)?")


@dataclass(frozen=True)
class Result:
    """The result of a script; `error` is the first line that packetdrill printed."""

    script: str
    result: str
    clauses: tuple[str, ...]
    error: str | None


def clauses(text: str) -> Iterator[str]:
    """The clauses that comments name: "RFC 9293 3.8.4, MUST-15" yields "RFC 9293 3.8.4" and "RFC 9293 MUST-15"."""
    for line in text.splitlines():
        comment = line.partition("//")[2]
        for found in _RFC.finditer(comment):
            end = found.end()
            while clause := _CLAUSE.match(comment, end):
                yield f"RFC {found[1]} {clause[1]}"
                end = clause.end()


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


@dataclass(frozen=True)
class Runner:
    """packetdrill with an installed stack; `room` has the copied scripts."""

    program: str
    installed: Installed
    room: Path
    tunables: Sequence[str]

    def error(self, script: Path) -> str | None:
        """Run a script; return None if it passes, or the first line of the error."""
        library = self.installed.build / LIBRARY
        with tempfile.TemporaryDirectory(dir=self.room) as own:
            control = Path(own) / "control"
            environment = {
                **os.environ,
                "PATH": f"{self.room / 'bin'}:{os.environ['PATH']}",
                "STACK_CTL": str(control),
                "LD_PRELOAD": str(library),  # for TCP_INFO in Python blocks, and sendfile
            }
            flags = " ".join((f"inet={LOCAL}/16 ctl.path={control}", *self.tunables))
            command = [
                self.program,
                f"--local_ip={LOCAL}",
                f"--so_filename={library}",
                f"--so_flags={flags}",
                script.name,
            ]
            try:
                done = subprocess.run(
                    command,
                    cwd=script.parent,
                    env=environment,
                    capture_output=True,
                    text=True,
                    timeout=WAIT,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                return f"not finished after {WAIT} seconds"
        if done.returncode == 0:
            return None
        lines = [line for line in (done.stderr + done.stdout).splitlines() if not line.startswith(NOISE)]
        return lines[0] if lines else f"status {done.returncode}"

    def result(self, script: Path) -> Result:
        """Run a script of the room."""
        error = self.error(script)
        name = str(script.relative_to(self.room / "scripts"))
        named = tuple(dict.fromkeys(clauses(script.read_text(errors="replace"))))
        return Result(name, "pass" if error is None else "fail", named, error)


def run_folder(program: str, folder: Path, parts: Sequence[str], tunables: Sequence[str]) -> list[Result]:
    """Run the scripts below a folder, one for each CPU, and print a line for each; `parts` of names select some."""
    installed = Installed(targets=[LIBRARY])
    try:
        with tempfile.TemporaryDirectory(prefix="conformance-") as room:
            scripts = prepare(folder, installed, Path(room))
            chosen = [
                path
                for path in sorted(scripts.rglob("*.pkt"))
                if not parts or any(part in str(path.relative_to(scripts)) for part in parts)
            ]
            runner = Runner(program, installed, Path(room), tunables)
            results = []
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                for result in pool.map(runner.result, chosen):
                    print("pass" if result.error is None else "FAIL", result.script, result.error or "", flush=True)
                    results.append(result)
    finally:
        installed.remove()
    return results


def find_program() -> str:
    """The program, from PACKETDRILL or PATH."""
    found = shutil.which(os.environ.get("PACKETDRILL", "packetdrill"))
    if found is None:
        sys.exit(
            "conformance: packetdrill is missing: build https://github.com/google/packetdrill and set PACKETDRILL to it"
        )
    return found


def main(words: Sequence[str]) -> int:
    """Return 1 if a script fails."""
    parser = argparse.ArgumentParser(prog="./dev conformance", description="Run packetdrill scripts against the stack.")
    parser.add_argument(
        "folder", nargs="*", type=Path, default=[OWN], help="a tree of scripts; default: the stack's own"
    )
    parser.add_argument("--only", action="append", default=[], metavar="PART", help="scripts with PART in their path")
    parser.add_argument("--personality", choices=PERSONALITIES, default="default", help="tunables of a system")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a tunable of the stack")
    parser.add_argument("--json", type=Path, help="write the results to this file")
    options = parser.parse_args(words)
    for folder in options.folder:
        if not folder.is_dir():
            parser.error(f"{folder} is not a folder")
    program = find_program()
    tunables = [f"{name}={value}" for name, value in PERSONALITIES[options.personality].items()] + options.set
    results = [result for folder in options.folder for result in run_folder(program, folder, options.only, tunables)]
    failed = sum(result.error is not None for result in results)
    if options.json is not None:
        options.json.write_text(json.dumps([asdict(result) for result in results], indent=1) + "\n", encoding="utf-8")
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
