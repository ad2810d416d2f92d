# SPDX-License-Identifier: BSD-2-Clause
"""A lab of three hosts that are virtual machines of QEMU; root is not needed.

    python -m runners.labs.vmlab up|down|status --name demo --net 77 --state DIR
    python -m runners.labs.vmlab boot HOST [WORDS] --state DIR ...

The hosts are connected as those of `netlab`.  A data link is a lossless stream between two of QEMU's processes.
For management each guest has a private network of its own, and the controller reaches its SSH server at
127.NET.0.11, .12 and .13, port 2222.

`boot` is the power switch: it ends the guest in any state and starts it again, waits until its SSH server answers, and
prints the console's output. On the device under test WORDS follow those of the lab in the kernel's command line. The
inventory has it as `boot_command`. Files of runs are on a permanent disk; the rest of a guest's root is in memory and
new at each boot. QEMU ends when a guest's kernel panics, or when a guest reboots by itself.

DIR keeps each guest's console with all its boots until the lab is started anew, also while the lab is down.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playbooks.module_utils import command_line, processes
from runners.ansible import guard
from runners.labs import common, vmimage
from runners.labs.common import (
    MANAGEMENT_NUMBER,
    ROOT,
    SSHD_CONFIG,
    LabError,
    command,
    end_ssh_connections,
    give_to_caller,
    make_keys,
    remove_state,
    wait_for_login,
    write_inventory,
)
from runners.paths import socket_directory

QEMU = "qemu-system-x86_64"
STORE = ROOT / "var" / "vm"
MEMORY_MIB = 512
# Libraries and the kernel use the newest instructions of a CPU, which are slow to emulate: a boot and two starts of
# Python take 8.5 CPU seconds with `max`, and 4.9 with those of 2009 (x86-64-v2), which the stack needs.
CPU = {"kvm": "host", "tcg": "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt"}
DISK_BYTES = 1 << 30
PROBE_SECONDS = 8.0
BOOT_SECONDS = 480.0
# An emulated guest on a busy machine needs many seconds for SSH's greeting, and for later responses.
PATIENT_SSH = {
    "ansible_ssh_timeout": 60,
    "ansible_ssh_args": "-o ControlMaster=auto -o ControlPersist=60 -o ServerAliveInterval=5 -o ServerAliveCountMax=24 "
    "-o BatchMode=yes",
}
MARK = "perfweb.plan"
"""Separates the lab's words from those of a plan in a command line; the kernel ignores it, because it has a dot."""
# A panic ends the guest at once, and so does an oops: a kernel that continues after one is not a valid target.
COMMAND_LINE = f"console=ttyS0 panic=-1 oops=panic {MARK}"
LINK_OWNERS = {"left": ("left",), "dut": ("left", "right"), "right": ("right",)}
"""The listening end of each data link; the device under test connects."""


@dataclass(frozen=True)
class Lab(common.Lab):
    """Names and numbers of a lab of virtual machines; `store` has the kernel and the root of its guests."""

    store: Path = STORE

    def management(self, host: str) -> str:
        return f"127.{self.net}.0.{MANAGEMENT_NUMBER[host]}"

    @property
    def ssh_port(self) -> int:
        return 2222

    @property
    def guard(self) -> str:
        return "/etc/perfweb/guard"

    @property
    def guard_file(self) -> Path:
        """Has the guard that was installed when the guests were started."""
        return self.state / "guest-guard"

    @property
    def accelerator_file(self) -> Path:
        """Returns the accelerator of the guests: `kvm`, or `tcg`, which is QEMU's emulation."""
        return self.state / "accelerator"

    def file(self, host: str, what: str) -> Path:
        """Returns the path of a guest's file: its `pid`, `log` of QEMU, `console`, `disk`, `root` and `words`."""
        return self.state / f"guest-{host}.{what}"

    def wire(self, owner: str) -> Path:
        """Returns the socket of the data link between the device under test and another host."""
        return socket_directory(self.state / "wires", 5) / owner


@contextlib.contextmanager
def _exclusive(lab: Lab) -> Iterator[None]:
    """Lets one process at a time switch guests of a lab."""
    lab.state.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (lab.state / "guest-lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def accelerator(kernel: Path) -> str:
    """Returns `kvm` where it works, else `tcg`.

    It is tried, because /dev/kvm can exist and yet a guest hang forever.
    """
    if not os.access("/dev/kvm", os.R_OK | os.W_OK):
        return "tcg"
    # A kernel without a root panics, which ends QEMU.
    argv = [QEMU, "-accel", "kvm", "-cpu", "host", "-m", "256", "-nodefaults", "-display", "none", "-no-reboot"]
    argv += ["-serial", "stdio", "-kernel", str(kernel), "-append", COMMAND_LINE]
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=PROBE_SECONDS)
        if done.returncode == 0 and b"Linux version" in done.stdout:
            return "kvm"
    return "tcg"


def _own_files(lab: Lab, host: str) -> dict[str, tuple[int, bytes]]:
    """Returns the files of a single guest: name, keys, and its network."""
    config = SSHD_CONFIG.format(address="0.0.0.0", keys="/etc/perfweb", host=host)  # noqa: S104  # nobody else is there
    texts = {
        "etc/hostname": f"{lab.host_name(host)}\n",
        "etc/hosts": f"127.0.0.1 localhost {lab.host_name(host)}\n::1 localhost\n",
        "etc/perfweb/sshd.conf": f"{config}Port 22\n",
        "etc/perfweb/authorized": (lab.keys / "authorized").read_text(encoding="ascii"),
        "etc/perfweb/network": "\n".join(_network(lab, host)) + "\n",
    }
    files = {name: (0o644, text.encode()) for name, text in texts.items()}
    links = [link.interface for link in lab.links(host)]
    files |= {f"{lab.guard[1:]}/{name}": (0o644, data) for name, data in guard.files(links).items()}
    return files | {f"etc/perfweb/{host}": (0o600, (lab.keys / host).read_bytes())}


def _network(lab: Lab, host: str) -> Iterator[str]:
    """Returns the commands that set up a guest's network, which carries only the packets of a test."""
    yield "hostname -F /etc/hostname"
    yield "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1"
    yield "ip link set lo up"
    yield "ip link set eth0 name mgmt0 up"
    yield "ip address add 192.0.2.15/24 dev mgmt0"
    yield "ip route add default via 192.0.2.2"
    for index, link in enumerate(lab.links(host), start=1):
        name = link.interface
        yield f"ip link set eth{index} name {name}"
        if host != "dut":
            yield f"ip link set {name} addrgenmode none"
            yield f"sysctl -qw net.ipv6.conf.{name}.disable_ipv6=0 net.ipv6.conf.{name}.accept_ra=0"
            yield f"ip address add {link.address} dev {name}"
            yield f"ip address add {link.address6} dev {name} nodad"
        yield f"ip link set {name} up"
    for route in lab.routes(host):
        yield f"ip route add {route['to']} via {route['via']}"


def _qemu(lab: Lab, host: str, words: str) -> list[str]:
    how = lab.accelerator_file.read_text(encoding="ascii").strip()
    cpus = sorted(os.sched_getaffinity(0))
    argv = ["taskset", "-c", str(cpus[-1] if host == "dut" else cpus[0]), QEMU, "-name", lab.host_name(host)]
    argv += ["-machine", "q35", "-accel", how, "-cpu", CPU[how], "-m", str(MEMORY_MIB)]
    argv += ["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot", "-device", "virtio-rng-pci"]
    argv += ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
    argv += ["-kernel", str(vmimage.kernel(lab.store)), "-initrd", str(lab.file(host, "root"))]
    argv += ["-append", f"{COMMAND_LINE} {words}".strip()]
    argv += ["-chardev", f"file,id=console,append=on,path={lab.file(host, 'console')}", "-serial", "chardev:console"]
    argv += ["-drive", f"if=virtio,format=raw,file={lab.file(host, 'disk')}"]
    forward = f"hostfwd=tcp:{lab.management(host)}:{lab.ssh_port}-192.0.2.15:22"
    argv += ["-netdev", f"user,id=net0,restrict=on,net=192.0.2.0/24,ipv6=off,{forward}", *_card(lab, host, 0)]
    for index, owner in enumerate(LINK_OWNERS[host], start=1):
        server = "off" if host == "dut" else "on"
        wire = f"stream,id=net{index},server={server},addr.type=unix,addr.path={lab.wire(owner)}"
        argv += ["-netdev", wire, *_card(lab, host, index)]
    return argv


def _card(lab: Lab, host: str, index: int) -> list[str]:
    """Returns the options of a network card; the bus addresses fix the order in which the kernel finds them."""
    mac = f"52:54:00:{lab.net:02x}:{MANAGEMENT_NUMBER[host]:02x}:{index:02x}"
    return ["-device", f"virtio-net-pci,netdev=net{index},mac={mac},addr=0x{8 + index:x},romfile="]


def _switch_on(lab: Lab, host: str, words: str) -> None:
    lab.file(host, "words").write_text(words, encoding="ascii")
    if host != "dut":
        lab.wire(host).unlink(missing_ok=True)
    argv = _qemu(lab, host, words)
    processes.spawn(argv, pid_file=lab.file(host, "pid"), log=lab.file(host, "log"), cwd=Path("/"))
    deadline = time.monotonic() + 10
    while host != "dut" and not lab.wire(host).exists():
        if time.monotonic() > deadline or not _runs(lab, host):
            raise LabError(f"{lab.host_name(host)} did not start: {_complaint(lab, host)}")
        time.sleep(0.05)


def _switch_off(lab: Lab, host: str) -> bool:
    return processes.stop(lab.file(host, "pid"), grace=2)


def _runs(lab: Lab, host: str) -> bool:
    return processes.running(lab.file(host, "pid")) is not None


def _wait(lab: Lab, host: str) -> None:
    """Waits until a login works, at most as long as the guest runs.

    QEMU accepts a connection before the guest has a network, and then repeats its own with growing pauses: a new try
    is faster. But a busy guest needs long for a greeting. So the tries become longer.
    """
    deadline, attempt = time.monotonic() + BOOT_SECONDS, 2.0
    while _runs(lab, host):
        with contextlib.suppress(LabError):
            wait_for_login(lab, host, lab.file(host, "console"), 0, attempt)
            return
        attempt = min(1.2 * attempt, 30.0)
        if time.monotonic() > deadline:
            break
        time.sleep(0.2)
    what = "does not answer" if _runs(lab, host) else "has ended"
    last = "\n".join(_console(lab, host).splitlines()[-30:])
    raise LabError(f"{lab.host_name(host)} {what}: {_complaint(lab, host)}\nits console ended so:\n{last}")


def _complaint(lab: Lab, host: str) -> str:
    """Returns QEMU's output, with what to do."""
    log = lab.file(host, "log").read_text(encoding="utf-8", errors="replace").strip()
    hint = "; choose another network with --net (./dev: PERFWEB_LAB_NET)" if "host forwarding" in log else ""
    return f"{log or 'QEMU printed nothing'}{hint}"


def _console(lab: Lab, host: str, offset: int = 0) -> str:
    path = lab.file(host, "console")
    return path.read_bytes()[offset:].decode("utf-8", "replace").replace("\r", "") if path.exists() else ""


def boot(lab: Lab, host: str, words: str = "") -> str:
    """Switches a guest off and on; returns its console output since then, and the reason if the guest had ended before.

    Raises LabError. The other end of a broken data link is the device under test, which is then booted, too.
    """
    if words and host != "dut":
        raise LabError(f"only the device under test has another command line, not {host}")
    if words and (why := command_line.problem(words)):
        raise LabError(f"the kernel is not booted with other words: {why}")
    with _exclusive(lab):
        if not lab.inventory.exists():
            raise LabError(f"no lab in {lab.state}: raise it with `up`")
        log = ""
        if not _switch_off(lab, host):
            tail = "\n".join(_console(lab, host).splitlines()[-60:])
            log = f"{lab.host_name(host)} had ended; its console's last words were:\n{tail}\n"
        offset = lab.file(host, "console").stat().st_size
        _switch_on(lab, host, words)
        if host != "dut":
            _switch_off(lab, "dut")
            _switch_on(lab, "dut", lab.file("dut", "words").read_text(encoding="ascii"))
            _wait(lab, "dut")
        _wait(lab, host)
        return log + _console(lab, host, offset)


def status(lab: Lab) -> dict[str, bool]:
    """Returns whether each guest runs."""
    return {host: _runs(lab, host) for host in MANAGEMENT_NUMBER}


def up(lab: Lab) -> None:
    """Starts the lab unless it is up; after an error all started parts are stopped."""
    with _exclusive(lab):
        same = lab.inventory.exists() and f"ansible_host: {lab.management('dut')}\n" in lab.inventory.read_text()
        if same and guard.version() == lab.guard_file.read_text(encoding="ascii") and all(status(lab).values()):
            return
        _take_down(lab)
        try:
            _raise(lab)
        except BaseException:
            _take_down(lab)
            raise


def _raise(lab: Lab) -> None:
    archive = vmimage.root_archive(lab.store).read_bytes()
    lab.accelerator_file.write_text(accelerator(vmimage.kernel(lab.store)), encoding="ascii")
    make_keys(lab)
    lab.guard_file.write_text(guard.version(), encoding="ascii")
    own = lab.state / "guest-own"
    for host in MANAGEMENT_NUMBER:
        lab.file(host, "console").write_bytes(b"")
        vmimage.own_archive(own, _own_files(lab, host))
        with lab.file(host, "root").open("wb") as file:
            file.write(archive)
            file.write(own.read_bytes())
        with lab.file(host, "disk").open("wb") as file:
            file.truncate(DISK_BYTES)
        command("/usr/sbin/mkfs.ext4", "-q", "-m", "0", "-E", "root_owner=0:0", str(lab.file(host, "disk")))
    for host in ("left", "right", "dut"):
        _switch_on(lab, host, "")
    for host in MANAGEMENT_NUMBER:
        _wait(lab, host)
    _write_inventory(lab)
    give_to_caller(lab)


def _write_inventory(lab: Lab) -> None:
    """Limits of runs on guests, which have little space and no compiler."""
    switch = ["env", f"PYTHONPATH={ROOT}", sys.executable, "-m", "runners.labs.vmlab", "boot", "--name", lab.name]
    switch += ["--net", str(lab.net), "--state", str(lab.state), "--store", str(lab.store)]
    common = {"accelerator": lab.accelerator_file.read_text(encoding="ascii"), "cpus": [0], **PATIENT_SSH}
    hosts = {
        host: {"boot_command": [*switch, host], "console_log": str(lab.file(host, "console"))}
        for host in MANAGEMENT_NUMBER
    }
    write_inventory(lab, common, hosts)


def down(lab: Lab) -> None:
    """Switches all guests off and removes what `up` made, except the consoles."""
    with _exclusive(lab):
        _take_down(lab)


def _take_down(lab: Lab) -> None:
    end_ssh_connections(lab)
    for host in MANAGEMENT_NUMBER:
        _switch_off(lab, host)
    wires = lab.wire("left").parent
    for path in wires.resolve().iterdir():
        path.unlink()
    wires.resolve().rmdir()
    if wires.is_symlink():
        wires.unlink()
    guests = (f"guest-*.{what}" for what in ("pid", "log", "root", "disk", "words"))
    remove_state(lab, "accelerator", "guest-own", "guest-guard", *guests)


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="runners.labs.vmlab", description="A lab of three virtual machines.")
    parser.add_argument("verb", choices=("up", "down", "status", "boot"))
    parser.add_argument("host", nargs="?", choices=tuple(MANAGEMENT_NUMBER), help="of boot: which guest")
    parser.add_argument("words", nargs="?", default="", help="of boot: words for the kernel's command line")
    parser.add_argument("--name", default="demo", help="what the guests' names begin with (%(default)s)")
    parser.add_argument("--net", type=int, default=77, help="the lab uses 10.NET.0.0/16, 127.NET.0.0/24 (%(default)s)")
    parser.add_argument(
        "--state", type=Path, default=ROOT / "var" / "vmlab", help="directory for keys, disks, consoles"
    )
    parser.add_argument("--store", type=Path, default=STORE, help="directory with the kernel and the root of guests")
    options = parser.parse_intermixed_args(arguments)  # WORDS come last
    try:
        lab = Lab(options.name, options.net, options.state.absolute(), options.store.absolute())
        if options.verb == "boot":
            if options.host is None:
                raise LabError("boot which guest? left, dut or right")
            print(boot(lab, options.host, options.words))
        elif options.verb == "status":
            answer = status(lab)
            for host, there in answer.items():
                print(f"{lab.host_name(host)}: {'up' if there else 'down'}")
            return 0 if all(answer.values()) else 1
        else:
            (up if options.verb == "up" else down)(lab)
    except (LabError, OSError, RuntimeError) as error:
        print(f"vmlab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
