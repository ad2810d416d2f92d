# SPDX-License-Identifier: BSD-2-Clause
"""Runs packetdrill with the stack: for scripts that need all of its language."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.stack.conformance.cases import FAMILIES, clauses
from tests.stack.conformance.runs import WAIT, Result
from tests.stack.topology import Installed

ADDRESS = re.compile(r"^--(local|remote)_ip=(\S+)$", re.MULTILINE)
UPWARDS = re.compile(r"(?:\.\./)+[\w./-]+")
PROGRAMS = (".sh", ".py")
# Options of packetdrill for each family, with the constants that google's run_all.py defines.
_IPV4 = ("--local_ip=192.168.0.1", "--remote_ip=192.0.2.1", "-D", "CODE=host_unreachable")
_IPV4_ERRORS = ("-D", "CMSG_LEVEL_IP=SOL_IP", "-D", "CMSG_TYPE_RECVERR=IP_RECVERR")
_IPV6_ERRORS = ("-D", "CMSG_LEVEL_IP=SOL_IPV6", "-D", "CMSG_TYPE_RECVERR=IPV6_RECVERR")
_IPV6 = ("--mtu=1520", "--local_ip=fd3d:0a0b:17d6::1", "--remote_ip=fd3d:fa7b:d17d::1")
# Cookies of Fast Open with the key that the scripts set.
_IPV4_COOKIE = ("-D", "TFO_COOKIE=3021b9d889017eeb")
_IPV6_COOKIE = ("-D", "TFO_COOKIE=c1d1e9742a47a9bc")
OPTIONS = {
    "ipv4": ("--ip_version=ipv4", *_IPV4, *_IPV4_ERRORS, *_IPV4_COOKIE),
    "mapped": ("--ip_version=ipv4-mapped-ipv6", *_IPV4, *_IPV6_ERRORS, *_IPV4_COOKIE),
    "ipv6": ("--ip_version=ipv6", *_IPV6, *_IPV6_ERRORS, *_IPV6_COOKIE),
}
ADDRESSES = {
    "ipv4": ("inet=192.168.0.1/16",),
    "mapped": ("inet=192.168.0.1/16",),
    # IPv6's header is 20 bytes longer, so that both have the same maximum segment size
    "ipv6": ("inet6=fd3d:0a0b:17d6::1/64", "mtu=1520"),
}
LIBRARY = "libstack_packetdrill.so"
NOISE = ("stack: ", "sysctl: ")  # knobs of Linux that the stack does not have

# Scripts read a counter, and flush the cookies that a host has of servers.
NSTAT = """#!/bin/sh
n=$(sysctl -n net.inet.tcp.stats.icmpwindow)
[ "$n" = 0 ] || echo "TcpExtOutOfWindowIcmps $n 0.0"
"""
IP = """#!/bin/sh
case "$*" in "tcp_metrics flush"*) sysctl -q net.inet.tcp.fastopen_purge=1 ;; esac
"""

# Scripts search the host's list of TCP sockets: an entry has addresses, ports and state as proc(5) writes them. An IPv6
# address is left as netstat writes it.
GREP = r"""#!/bin/sh
table() {
	stackctl -s "$STACK_CTL" netstat -a | awk -v protocol="$1" '
	BEGIN {
		states = "ESTABLISHED SYN_SENT SYN_RECEIVED FIN_WAIT_1 FIN_WAIT_2 TIME_WAIT CLOSED CLOSE_WAIT LAST_ACK"
		split(states " LISTEN CLOSING", names, " ")
		for (n in names)
			number[names[n]] = n
	}
	function end(text,  port, b) {
		port = text
		sub(/.*:/, "", port)
		sub(/:[^:]*$/, "", text)
		if (text !~ /:/ && split(text == "*" ? "0.0.0.0" : text, b, "."))
			text = sprintf("%02X%02X%02X%02X", b[4], b[3], b[2], b[1])
		return sprintf("%s:%04X", text, port)
	}
	$1 == protocol {
		printf "%4d: %s %s %02X %08X:%08X\n", row++, end($4), end($5), number[$6], $3, $2
	}'
}
for word; do
	shift
	case $word in
	/proc/net/tcp) table tcp >/tmp/tcp.$$; word=/tmp/tcp.$$ ;;
	/proc/net/tcp6) table tcp6 >/tmp/tcp6.$$; word=/tmp/tcp6.$$ ;;
	esac
	set -- "$@" "$word"
done
/bin/grep "$@"
found=$?
rm -f /tmp/tcp.$$ /tmp/tcp6.$$
exit $found
"""

# Scripts turn segmentation offload off for a tun device, which does not exist here.
ETHTOOL = """#!/bin/sh
case "$*" in *"tso off"*) sysctl -q net.inet.tcp.tsomax=1460 ;; esac
"""

# The scripts' own program writes to /proc/sys, which belongs to the host, and writes a script that undoes it.
SET_SYSCTLS = """#!/bin/sh
undo=/tmp/sysctl_restore_$PACKETDRILL_PID.sh
printf '#!/bin/sh\\nrm -f "$0"\\n' >"$undo"
chmod +x "$undo"
for setting; do sysctl -q "${setting#/proc/sys/}"; done
exit 0
"""


def families_of(script: Path) -> tuple[str, ...]:
    """The families that a script is for: a name that ends in v4 or v6 excludes the others."""
    if script.stem.endswith("v6"):
        return ("ipv6",)
    if script.stem.endswith("v4") or own_addresses(script):
        return ("ipv4", "mapped")
    return FAMILIES


def own_addresses(script: Path) -> dict[str, str]:
    """The IPv4 addresses that a script sets, by end of the connection, although options replace them."""
    return dict(ADDRESS.findall(script.read_text(errors="replace")))


def helpers_of(folder: Path) -> set[Path]:
    """Return the folders of programs that scripts name by a path upwards, such as ../../common/defaults.sh."""
    named = {
        Path(os.path.normpath(script.parent / match[0]))
        for script in folder.rglob("*.pkt")
        for match in UPWARDS.finditer(script.read_text(errors="replace"))
    }
    return {path.parent for path in named if path.is_file() and not path.is_relative_to(folder)}


def copy_tree(folder: Path, room: Path) -> Path:
    """Copy the scripts and the programs that they name, whose places relative to each other stay as they are."""
    helpers = helpers_of(folder)
    root = Path(os.path.commonpath([folder, *helpers]))
    shutil.copytree(folder, room / folder.relative_to(root))
    for helper in helpers:
        place = room / helper.relative_to(root)
        place.mkdir(parents=True, exist_ok=True)
        for path in helper.iterdir():
            if path.suffix in PROGRAMS and path.is_file():
                shutil.copy(path, place)
    return room / folder.relative_to(root)


def prepare(folder: Path, installed: Installed, room: Path) -> Path:
    """Copy the scripts so that they configure the stack instead of the host; its programs are in room/bin."""
    copy = copy_tree(Path(os.path.abspath(folder)), room / "scripts")
    for path in (room / "scripts").rglob("set_sysctls.py"):
        path.unlink()
        path.write_text(SET_SYSCTLS)
        path.chmod(0o755)
    programs = room / "bin"
    programs.mkdir()
    (programs / "sysctl").symlink_to(installed.prefix / "libexec" / "stack" / "sysctl")
    (programs / "tc").symlink_to("/bin/true")  # it sets up a tun device, which does not exist here
    (programs / "stackctl").symlink_to(installed.prefix / "bin" / "stackctl")
    for name, text in (("ethtool", ETHTOOL), ("grep", GREP), ("ip", IP), ("nstat", NSTAT)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    return copy


@dataclass(frozen=True)
class Runner:
    """packetdrill with an installed stack; `scripts` are copies in `room`."""

    program: str
    installed: Installed
    room: Path
    scripts: Path
    tunables: Sequence[str]

    def error(self, script: Path, family: str) -> str | None:
        """Run a script with a family; return None if it passes, or the first line of the error."""
        library = self.installed.build / LIBRARY
        with tempfile.TemporaryDirectory(dir=self.room) as folder:
            control = Path(folder) / "control"
            environment = {
                **os.environ,
                "PATH": f"{self.room / 'bin'}:{os.environ['PATH']}",
                "STACK_CTL": str(control),
                "LD_PRELOAD": str(library),  # for TCP_INFO in Python blocks, and sendfile
            }
            own = own_addresses(script)
            addresses = [f"inet={own['local']}/16"] if "local" in own else ADDRESSES[family]
            flags = " ".join((*addresses, f"ctl.path={control}", *self.tunables))
            command = [
                self.program,
                *OPTIONS[family],
                *(f"--{end}_ip={address}" for end, address in own.items()),
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

    def result(self, script: Path, family: str) -> Result:
        """Run a script of the room with a family."""
        error = self.error(script, family)
        name = str(script.relative_to(self.scripts))
        named = tuple(dict.fromkeys(clauses(script.read_text(errors="replace"))))
        return Result(name, family, "pass" if error is None else "fail", named, error)


def run_folders(
    folders: Sequence[Path], parts: Sequence[str], families: Sequence[str], tunables: Sequence[str]
) -> Iterator[Result]:
    """Run the scripts below folders with families, one for each CPU; `parts` of names select some."""
    program = find_program()
    for folder in folders:
        yield from _run_folder(program, folder, parts, families, tunables)


def _run_folder(
    program: str, folder: Path, parts: Sequence[str], families: Sequence[str], tunables: Sequence[str]
) -> Iterator[Result]:
    installed = Installed(targets=[LIBRARY])
    try:
        with tempfile.TemporaryDirectory(prefix="conformance-") as room:
            scripts = prepare(folder, installed, Path(room))
            chosen = [
                (path, family)
                for path in sorted(scripts.rglob("*.pkt"))
                for family in families_of(path)
                if family in families
                if not parts or any(part in str(path.relative_to(scripts)) for part in parts)
            ]
            runner = Runner(program, installed, Path(room), scripts, tunables)
            with ThreadPoolExecutor(os.cpu_count()) as pool:
                yield from pool.map(runner.result, *zip(*chosen, strict=True))
    finally:
        installed.remove()


def find_program() -> str:
    """The program, from PACKETDRILL or PATH."""
    found = shutil.which(os.environ.get("PACKETDRILL", "packetdrill"))
    if found is None:
        sys.exit(
            "conformance: packetdrill is missing: build https://github.com/google/packetdrill and set PACKETDRILL to it"
        )
    return found
