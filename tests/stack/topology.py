# SPDX-License-Identifier: BSD-2-Clause
"""Network namespaces with a booted stack between them, for tests of programs and of the router.

`left` and `right` are Linux hosts; `dut` has for each of them a data link that two `tc` redirects join to a TAP device,
as docs/explanation/architecture.md describes a device under test. The stack runs as an unprivileged user.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from playbooks.module_utils import congestion
from tests.stack import builds

UID = 65534  # nobody
PATIENCE = 180.0
"""Max seconds of any wait, because a busy machine must not fail a test."""
PYTHON = (
    "/usr/bin/python3"  # which an unprivileged user may run, too: a virtual environment may be in a private directory
)
OFFLOADS = {
    "checksums": "tx-checksumming",
    "TSO": "tcp-segmentation-offload",
    "GSO": "generic-segmentation-offload",
    "GRO": "generic-receive-offload",
    "LRO": "large-receive-offload",
}
TUN = Path("/dev/net/tun")


def impair(*harms: str, device: str = "tap0") -> dict[str, str]:
    """Tunables that damage one packet in a hundred of an interface, in both directions: loss, reorder, dup, corrupt."""
    return {f"if.{device}.impair.{harm}": "10000" for harm in harms}


def run(*argv: str, check: bool = True, timeout: float = 180, text: str = "") -> str:
    """Run a command with a text as its input; return its standard output. A failure is an assertion with all output."""
    done = subprocess.run(argv, input=text, capture_output=True, text=True, timeout=timeout)
    assert not check or done.returncode == 0, f"`{' '.join(argv)}` gave {done.returncode}: {done.stdout}{done.stderr}"
    return done.stdout


def batch(*words: str, lines: Sequence[str]) -> None:
    """Let one process of ip(8) or tc(8) run some commands: `words` are its name and options."""
    run(*words, "-batch", "-", text="".join(f"{line}\n" for line in lines))


@dataclass(frozen=True)
class Driver:
    """A driver that joins the stack to the links of dut: its name in loader.conf, the interfaces, and its
    capabilities.
    """

    name: str
    interface: str = "data"
    capabilities: tuple[str, ...] = ()

    def address(self, index: int) -> dict[str, str]:
        """Tunables that give the stack the address of a link."""
        name = f"{self.interface}{index}"
        driver = {} if self.interface == self.name else {f"if.{name}.driver": self.name}
        return {**driver, f"if.{name}.inet": f"10.99.{index}.2/24"}


TAP = Driver("tap", "tap")
PACKET = Driver("packet", capabilities=("net_raw",))
XDP = Driver("xdp", capabilities=("net_raw", "net_admin", "bpf", "ipc_lock"))
DRIVERS = (TAP, PACKET, XDP)


class Installed:
    """A build of the stack, installed in a directory that every user may read.

    `name` is one of builds.BUILDS; `targets` are those of ninja that are built in addition.
    """

    def __init__(self, name: str = "release", targets: Sequence[str] = ()) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="stack-test-"))
        self.directory.chmod(0o755)
        self.build = builds.make(name, *targets)
        with builds.locked(self.build):
            self.meson("install", "-C", str(self.build), "--no-rebuild", "--quiet", "--destdir", str(self.directory))
        self.prefix = next(path.parent for path in self.directory.rglob("bin"))

    def meson(self, *argv: str) -> str:
        """Run meson; return its output."""
        return run(builds.MESON, *argv, timeout=3600)

    def remove(self) -> None:
        """Deletes it."""
        shutil.rmtree(self.directory)


def _end(index: int) -> list[str]:
    """Commands for the end of a link on a host: 10.99.INDEX.1, 2001:db8:INDEX::1."""
    return [
        f"address add 10.99.{index}.1/24 dev data0",
        # nodad: a test does not wait for Linux's duplicate address detection
        f"address add 2001:db8:{index}::1/64 dev data0 nodad",
        "link set data0 up",
        "link set lo up",
        f"route add 10.99.0.0/16 via 10.99.{index}.2",
        f"route add 2001:db8::/32 via 2001:db8:{index}::2",
    ]


def _redirects(index: int) -> list[str]:
    """Commands that join dataINDEX of dut to tapINDEX."""
    names = (f"data{index}", f"tap{index}")
    match = "ingress protocol all u32 match u32 0 0 action mirred egress redirect dev"
    return [
        *(f"qdisc add dev {name} clsact" for name in names),
        *(f"filter add dev {here} {match} {there}" for here, there in (names, names[::-1])),
    ]


class Topology:
    """left ──data0── dut ──data1── right; as a context it is removed again."""

    def __init__(self, installed: Installed) -> None:
        self.installed = installed
        self.name = f"st{os.getpid()}"
        self.directory = Path(tempfile.mkdtemp(prefix="stack-test-"))
        os.chown(self.directory, UID, UID)
        self.children: list[subprocess.Popen[str]] = []
        self.hosts: list[str] = []

    def __enter__(self) -> Self:
        self.add_hosts("left", "dut", "right")
        dut = self.host("dut")
        batch("ip", "-n", dut, lines=[*self._links(0, "left"), *self._links(1, "right")])
        for index, host in enumerate(("left", "right")):
            batch("ip", "-n", self.host(host), lines=_end(index))
        batch("tc", "-n", dut, lines=[*_redirects(0), *_redirects(1)])
        for host in ("left", "right"):
            self._await_link(host)
        return self

    def __exit__(self, *exc: object) -> None:
        for child in reversed(self.children):
            self.stop(child)
        try:
            batch("ip", "-force", lines=[f"netns delete {self.host(host)}" for host in self.hosts])
        finally:
            shutil.rmtree(self.directory)

    def host(self, name: str) -> str:
        """The namespace of a host."""
        return f"{self.name}-{name}"

    def add_hosts(self, *names: str) -> None:
        """Make more hosts, without a link."""
        batch("ip", lines=[f"netns add {self.host(name)}" for name in names])
        self.hosts += names

    def _links(self, index: int, host: str) -> list[str]:
        """Commands for a veth from a host to dut's dataINDEX, and for tapINDEX there."""
        data, tap = f"data{index}", f"tap{index}"
        return [
            f"link add {data} type veth peer name data0 netns {self.host(host)}",
            f"tuntap add {tap} mode tap user {UID} multi_queue vnet_hdr",
            *(f"link set {name} {words}" for name in (data, tap) for words in ("addrgenmode none", "up promisc on")),
        ]

    def _await_link(self, host: str) -> None:
        """Waits until Linux sends packets on a host's link: it drops them until it notices that both ends are up."""
        until = time.monotonic() + PATIENCE
        while run("ip", "-n", self.host(host), "-brief", "link", "show", "data0").split()[1] != "UP":
            assert time.monotonic() < until, f"the link of {host} does not come up"
            time.sleep(0.01)

    def on(self, host: str, *argv: str, check: bool = True, timeout: float = 180) -> str:
        """Runs a command on a host; its standard output."""
        return run("ip", "netns", "exec", self.host(host), *argv, check=check, timeout=timeout)

    def prepare(self, driver: Driver, queues: int = 1) -> None:
        """Make the links as a driver needs them."""
        if driver is not XDP:
            return
        for index, host in enumerate(("left", "right")):
            # The receiving end first, because no queue may send to a missing one.
            for end in ("rx", "tx"):
                self.on("dut", "ethtool", "-L", f"data{index}", end, str(queues))
                self.on(host, "ethtool", "-L", "data0", end, str(queues))
            # A veth leaves the checksum to the receiver, and a frame does not show that.
            self.on(host, "ethtool", "-K", "data0", "tx", "off")

    def start(
        self, host: str, *argv: str, log: str, uid: int | None = None, capabilities: Sequence[str] = ()
    ) -> subprocess.Popen[str]:
        """Start a command on a host, optionally as a user; its output goes to the file `log` of the directory."""
        user = [] if uid is None else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups"]
        if uid is not None and capabilities:
            caps = ",".join(f"+{name}" for name in capabilities)
            user += [f"--inh-caps={caps}", f"--ambient-caps={caps}"]
        with (self.directory / log).open("w", encoding="utf-8") as out:
            words = ["ip", "netns", "exec", self.host(host), *user, *argv]
            child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, text=True)
        self.children.append(child)
        return child

    def stop(self, child: subprocess.Popen[str]) -> int:
        """End a child with SIGTERM and return its exit status."""
        if child.poll() is None:
            child.send_signal(signal.SIGTERM)
        try:
            return child.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            raise

    def logs(self) -> str:
        """All output of the children, file by file."""
        return "".join(f"== {path.name}\n{self.log(path.name)}\n" for path in sorted(self.directory.glob("*.log")))

    def boot(
        self,
        tunables: Mapping[str, str],
        program: Sequence[str] = (),
        driver: Driver = TAP,
        layout: int | None = None,
    ) -> subprocess.Popen[str]:
        """Boot the stack on dut, with link 0 as 10.99.0.2, alone or under a program, and wait until it is up."""
        # udev does this where it exists; tests of the lab, perhaps of another clone, undo it.
        TUN.chmod(TUN.stat().st_mode | 0o006)
        conf = {"ctl.path": f"{self.directory}/ctl", **driver.address(0), **tunables}
        text = "".join(f'{name}="{value}"\n' for name, value in conf.items())
        (self.directory / "loader.conf").write_text(text, encoding="ascii")
        folder = self.installed.prefix / (f"layouts/{layout}" if layout else "bin")
        words = [f"{folder}/bootstack", "-c", f"{self.directory}/loader.conf"]
        child = self.start("dut", *words, *(["--", *program] if program else []), log="boot.log", uid=UID,
                           capabilities=driver.capabilities)  # fmt: skip
        until = time.monotonic() + PATIENCE
        while "stack: up\n" not in (log := self.log("boot.log")):
            assert child.poll() is None, self.log("boot.log")
            assert time.monotonic() < until, log
            time.sleep(0.02)
        return child

    def log(self, name: str) -> str:
        """The output of a child so far."""
        return (self.directory / name).read_text(encoding="utf-8", errors="replace")

    def await_line(self, log: str, text: str) -> None:
        """Wait until a child has printed something."""
        until = time.monotonic() + PATIENCE
        while text not in self.log(log):
            assert time.monotonic() < until, f"no {text!r} in: {self.log(log)}"
            time.sleep(0.02)

    def ask(self, *request: str, check: bool = True) -> str:
        """The response of the booted stack to stackctl."""
        return run(f"{self.installed.prefix}/bin/stackctl", "-s", f"{self.directory}/ctl", *request, check=check)

    def await_port(self, port: int, host: str | None = None) -> None:
        """Waits until a program listens at a port of TCP, on the stack or on a Linux host."""
        until = time.monotonic() + PATIENCE
        while not re.search(rf":{port}\b.*LISTEN|LISTEN.*:{port}\b", sockets := self._sockets(host)):
            assert time.monotonic() < until, f"nobody listens at {port}: {sockets}{self.logs()}"
            time.sleep(0.05)

    def _sockets(self, host: str | None) -> str:
        return self.ask("netstat", "-a") if host is None else self.on(host, "ss", "-ltn")

    def settings(self, host: str) -> str:
        """The settings that affect the speed of a Linux host's TCP: congestion control, and the features of the
        device.
        """
        shown = self.on(host, "sh", "-c", "cat /proc/sys/net/ipv4/tcp_congestion_control; ethtool -k data0")
        control, *features = shown.splitlines()
        offloads = [f"{short} {'on' if f'{name}: on' in features else 'off'}" for short, name in OFFLOADS.items()]
        return f"{control}, {', '.join(offloads)}"

    def set_congestion(self, host: str, name: str) -> None:
        """Set the congestion control of a Linux host's TCP."""
        with congestion.allowed(name):
            self.on(host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={name}")

    def await_value(self, name: str, value: int) -> None:
        """Waits until a counter has come to a value."""
        until = time.monotonic() + PATIENCE
        while int(self.value(name)) < value:
            assert time.monotonic() < until, f"{name} is {self.value(name)}, not {value}"
            time.sleep(0.05)

    def buffers(self) -> int:
        """mbufs in use."""
        return int(self.value("mbuf.outstanding"))

    def await_buffers(self, before: int, margin: int = 0) -> None:
        """Waits until about as many mbufs are in use as before: after a program's end its last packets still travel."""
        until = time.monotonic() + PATIENCE
        while abs((now := self.buffers()) - before) > margin:
            assert time.monotonic() < until, f"{now} mbufs are in use, {before} before"
            time.sleep(0.05)

    def value(self, name: str) -> str:
        """The value of a sysctl of the booted stack."""
        return self.ask("sysctl", name).partition(": ")[2].strip()
