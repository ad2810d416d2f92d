# SPDX-License-Identifier: BSD-2-Clause
"""Shared parts of the labs of three hosts on one machine: names, addresses, keys, and logging in."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from runners.ansible import guard
from runners.ansible.packing import GUARDED
from runners.paths import CONTROL_NAME_LENGTH, socket_directory

ROOT = Path(__file__).resolve().parents[2]
MANAGEMENT_NUMBER = {"left": 11, "dut": 12, "right": 13}
DATA_NUMBER = {"left": 1, "dut": 2, "right": 3}

# A bash started by sshd reads root's .bashrc for every single command, except below another shell; the lab's hosts must
# not depend on that file.
SSHD_CONFIG = """\
SetEnv SHLVL=1
ListenAddress {address}
HostKey {keys}/{host}
AuthorizedKeysFile {keys}/authorized
PidFile none
AllowUsers root
PermitRootLogin prohibit-password
AuthenticationMethods publickey
PasswordAuthentication no
KbdInteractiveAuthentication no
UsePAM no
StrictModes no
UseDNS no
PrintMotd no
LogLevel ERROR
Subsystem sftp internal-sftp
"""


class LabError(RuntimeError):
    """The lab could not be started or stopped; the message has what to do."""


@dataclass(frozen=True)
class Link:
    """A host's end of a data link."""

    interface: str
    address: str
    address6: str


@dataclass(frozen=True)
class Lab:
    """Names and numbers of one lab; nothing here reads the machine's state."""

    name: str
    net: int
    state: Path

    def __post_init__(self) -> None:
        # An interface name has at most 15 characters and "-right" is added.
        if not re.fullmatch(r"[a-z][a-z0-9]{0,8}", self.name):
            raise LabError(f"{self.name!r} is no name for a lab: use 1 to 9 small letters and digits, a letter first")
        if not 0 <= self.net <= 255:
            raise LabError(f"{self.net} is no number for a lab: 10.NUMBER.0.0/16 needs one from 0 to 255")
        if re.search(r"[\s,]", str(self.state)):  # QEMU's options end at a comma
            raise LabError(
                f"ssh and QEMU cannot use files in {str(self.state)!r}: choose one without blanks and commas"
            )

    def host_name(self, host: str) -> str:
        """The name of a host on this machine."""
        return f"{self.name}-{host}"

    def management(self, host: str) -> str:
        """A host's management address."""
        raise NotImplementedError

    @property
    def ssh_port(self) -> int:
        """The TCP port of the hosts' SSH servers."""
        return 22

    def links(self, host: str) -> list[Link]:
        """A host's data links; network 1 is left of the device under test, 2 right of it."""
        networks = {"left": (1,), "dut": (1, 2), "right": (2,)}[host]
        number = DATA_NUMBER[host]
        return [
            Link(f"data{index}", f"10.{self.net}.{network}.{number}/24", f"{self.prefix6(network)}:{number}/64")
            for index, network in enumerate(networks)
        ]

    def prefix6(self, network: int) -> str:
        """The prefix of an IPv6 network, such as `fd50:6572:6677:4d01:`."""
        return f"fd50:6572:6677:{self.net << 8 | network:x}:"

    def routes(self, host: str) -> list[dict[str, str]]:
        """A host's route to the network on the other side of the device under test."""
        if host == "dut":
            return []
        near, far = (1, 2) if host == "left" else (2, 1)
        router = DATA_NUMBER["dut"]
        return [
            {"to": f"10.{self.net}.{far}.0/24", "via": f"10.{self.net}.{near}.{router}"},
            {"to": f"{self.prefix6(far)}:/64", "via": f"{self.prefix6(near)}:{router}"},
        ]

    @property
    def keys(self) -> Path:
        """Private keys and the list of authorized ones."""
        return self.state / "keys"

    @property
    def guard(self) -> str:
        """The hosts' directory of the guard, which limits the service's key (playbooks/guard.py)."""
        raise NotImplementedError

    @property
    def simulator(self) -> Path:
        """The inventory of a testbed that simulates, on the device under test."""
        return self.state / "sim.yml"

    @property
    def counter(self) -> Path:
        """The inventory of a testbed that counts, on the device under test."""
        return self.state / "counted.yml"

    @property
    def inventory(self) -> Path:
        """The Ansible inventory; written last, so it also marks the lab as complete."""
        return self.state / "inventory.yml"


def command(*argv: str, check: bool = True) -> str:
    """Returns the output of a tool. Raises LabError with its error message."""
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if check and done.returncode != 0:
        raise LabError(f"`{shlex.join(argv)}` failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def make_keys(lab: Lab) -> None:
    """Makes a key for each host, one for the service and one for users, and the list of known hosts."""
    lab.keys.mkdir(mode=0o700)
    for name in ("client", "operator", *MANAGEMENT_NUMBER):
        command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", lab.host_name(name), "-f", str(lab.keys / name))
    client, operator = ((lab.keys / f"{name}.pub").read_text(encoding="ascii") for name in ("client", "operator"))
    (lab.keys / "authorized").write_text(guard.line(client, lab.guard) + operator, encoding="ascii")
    known = [
        f"{_known_name(lab, host)} {(lab.keys / f'{host}.pub').read_text(encoding='ascii')}"
        for host in MANAGEMENT_NUMBER
    ]
    (lab.state / "known_hosts").write_text("".join(known), encoding="ascii")


def _known_name(lab: Lab, host: str) -> str:
    """Returns a line for a file of known hosts (sshd(8))."""
    return lab.management(host) if lab.ssh_port == 22 else f"[{lab.management(host)}]:{lab.ssh_port}"


def ssh_options(lab: Lab) -> list[str]:
    """Returns the SSH options that reach the hosts of a lab, and no others."""
    files = ["-o", f"UserKnownHostsFile={lab.state}/known_hosts", "-o", "GlobalKnownHostsFile=/dev/null"]
    return ["-F", "/dev/null", *files, "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]


def wait_for_login(lab: Lab, host: str, log: Path, seconds: float, attempt: float = 30) -> None:
    """Logs in once, because a lab counts as up only if its hosts can be used. `log` is named in the error.

    Tries for `seconds`. A try takes at most `attempt` seconds, with the greeting, which is slow on a busy host.
    """
    argv = ["ssh", *ssh_options(lab), "-o", "BatchMode=yes", "-o", f"ConnectTimeout={attempt:.0f}"]
    argv += ["-i", str(lab.keys / "client")]
    argv += ["-p", str(lab.ssh_port), f"root@{lab.management(host)}", "true"]
    deadline = time.monotonic() + seconds
    while True:
        done = subprocess.run(argv, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            console = log.read_text(encoding="utf-8", errors="replace").strip()
            raise LabError(f"cannot log in to {lab.host_name(host)}: {done.stderr.strip()}\n{console}")
        time.sleep(0.05)


def write_inventory(lab: Lab, common: Mapping[str, object], hosts: Mapping[str, Mapping[str, object]]) -> None:
    """Writes the inventory: variables of all, and of each host by its role, besides addresses and links."""
    groups = {}
    for host, variables in hosts.items():
        wired = {"data_links": [vars(link) for link in lab.links(host)], "routes": lab.routes(host)}
        groups[host] = {"hosts": {lab.host_name(host): {"ansible_host": lab.management(host), **wired, **variables}}}
    _write(lab, lab.inventory, common, groups)


def write_emulating(lab: Lab, common: Mapping[str, object]) -> None:
    """Writes the inventories of testbeds that simulate and that count: dut under other names, without other hosts."""
    host = {"ansible_host": lab.management("dut"), "data_links": []}
    _write(lab, lab.simulator, common, {"dut": {"hosts": {lab.host_name("sim"): host}}})
    _write(lab, lab.counter, common, {"dut": {"hosts": {lab.host_name("counted"): {**host, "counts": True}}}})


def _write(lab: Lab, path: Path, common: Mapping[str, object], groups: Mapping[str, object]) -> None:
    reached: dict[str, object] = {
        "ansible_user": "root",
        "ansible_port": lab.ssh_port,
        "ansible_python_interpreter": "/usr/bin/python3",
        "ansible_module_compression": GUARDED,
        "ansible_ssh_private_key_file": str(lab.keys / "client"),
        "ansible_ssh_common_args": shlex.join(ssh_options(lab)),
        "ansible_control_path_dir": str(socket_directory(lab.state / "ssh", CONTROL_NAME_LENGTH)),
    }
    text = yaml.safe_dump({"all": {"vars": {**reached, **common}, "children": groups}}, sort_keys=False)
    path.write_text(f"# Written when this lab was raised.\n{text}", encoding="utf-8")


def give_to_caller(lab: Lab) -> None:
    """Makes the lab's key readable for the calling user of sudo."""
    uid, gid = int(os.environ.get("SUDO_UID", "0")), int(os.environ.get("SUDO_GID", "0"))
    if uid:
        for path in (lab.state, *lab.state.rglob("*")):
            os.chown(path, uid, gid, follow_symlinks=False)


def end_ssh_connections(lab: Lab) -> None:
    """Ends the controller's shared SSH connections, which would hang after the lab is gone."""
    directory = lab.state / "ssh"
    if directory.is_dir():
        for path in directory.iterdir():
            command("ssh", "-F", "/dev/null", "-O", "exit", "-o", f"ControlPath={path}", "lab", check=False)


def remove_state(lab: Lab, *patterns: str) -> None:
    """Removes the inventory, keys and sockets of a lab, files of these patterns, and its directory if it is empty."""
    lab.inventory.unlink(missing_ok=True)
    lab.simulator.unlink(missing_ok=True)
    lab.counter.unlink(missing_ok=True)
    sockets = lab.state / "ssh"
    if sockets.is_symlink():
        shutil.rmtree(sockets.resolve(), ignore_errors=True)
        sockets.unlink()
    for path in (lab.keys, sockets):
        shutil.rmtree(path, ignore_errors=True)
    for path in (lab.state / "known_hosts", *(path for pattern in patterns for path in lab.state.glob(pattern))):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        lab.state.rmdir()
