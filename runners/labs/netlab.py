# SPDX-License-Identifier: BSD-2-Clause
"""A lab of three hosts on one machine, made of network namespaces.

    python -m runners.labs.netlab up|down|status --name demo --net 77 --state DIR

                    controller, bridge NAME-br, 10.NET.0.1
                 mgmt0 │ .11          │ .12           │ .13
                    left ─data0── data0 dut data1 ──data0─ right
                  10.NET.1.1    10.NET.1.2  10.NET.2.2   10.NET.2.3
                  and in the same places fd50:6572:6677:NN01::1, ::2 and fd50:6572:6677:NN02::2, ::3
                  (a network of its own, RFC 4193; NN is NET in hexadecimal)

Every host has its own SSH server on its management address, with its own host key. One key, made here, opens all three.
After that nothing depends on namespaces: the inventory in DIR/inventory.yml looks like one of real machines. The device
under test gets no addresses on its data links, because the tested system sets them.

Starting a lab that is up changes nothing; an incomplete one is removed first. Stopping works from the names alone, also
when DIR is lost.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import fcntl
import json
import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from playbooks.module_utils import congestion, processes
from runners.ansible import guard
from runners.labs import common
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
    write_emulating,
    write_inventory,
)

RUN = Path("/run/perfweb")
"""Has a lock and, for each lab that is up, a file with its directory."""
HOSTS_ROOT = Path("/var/tmp/perfweb")  # noqa: S108  # the playbooks refuse it if a stranger made it
CONGESTION_CONTROL = "cubic"


@dataclass(frozen=True)
class Lab(common.Lab):
    """Names and numbers of a lab of namespaces."""

    @property
    def bridge(self) -> str:
        """The management bridge on the controller."""
        return f"{self.name}-br"

    def namespace(self, host: str) -> str:
        """Name of a host: of its namespace, and of the controller's end of its management link."""
        return self.host_name(host)

    def management(self, host: str) -> str:
        """A host's address on the management network."""
        return f"10.{self.net}.0.{MANAGEMENT_NUMBER[host]}"

    @property
    def root(self) -> Path:
        """The directory of run files on these hosts, which share the file system."""
        return HOSTS_ROOT / self.name

    @property
    def guard(self) -> str:
        return str(self.state / "guard")

    @property
    def owner_file(self) -> Path:
        """Records the owner of a lab, because names are global on the machine."""
        return RUN / f"lab-{self.name}"

    @property
    def machine_network(self) -> Path:
        """A link to the machine's own network namespace, which some settings of the hosts need."""
        return RUN / f"machine-{self.name}"

    def pid_file(self, host: str) -> Path:
        """The pid file of a host's SSH server."""
        return self.state / f"sshd-{host}.pid"


def _in(lab: Lab, host: str, *argv: str) -> str:
    return command("ip", "netns", "exec", lab.namespace(host), *argv)


def _ip_in(lab: Lab, host: str, words: str) -> None:
    command("ip", "-n", lab.namespace(host), *words.split())


@contextlib.contextmanager
def _exclusive() -> Iterator[None]:
    """Lets one lab at a time change: interfaces and one list of the kernel are shared."""
    RUN.mkdir(mode=0o755, exist_ok=True)
    with (RUN / "lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _require_means(lab: Lab) -> None:
    missing = [tool for tool in ("ip", "ssh-keygen", "ssh", "sysctl") if shutil.which(tool) is None]
    if missing or not Path("/usr/sbin/sshd").exists():
        raise LabError(f"not installed: {', '.join(missing) or 'sshd'}; run ./dev setup")
    for interface in json.loads(command("ip", "-j", "-4", "address")):
        if any(address["local"].startswith(f"10.{lab.net}.") for address in interface["addr_info"]):
            raise LabError(
                f"{interface['ifname']} has an address in 10.{lab.net}.0.0/16: choose another network with --net"
            )


def _make_network(lab: Lab) -> None:
    lab.machine_network.touch()
    command("mount", "--bind", "/proc/self/ns/net", str(lab.machine_network))
    command("ip", "link", "add", lab.bridge, "type", "bridge")
    command("ip", "address", "add", f"10.{lab.net}.0.1/24", "dev", lab.bridge)
    command("ip", "link", "set", lab.bridge, "up")
    for host in MANAGEMENT_NUMBER:
        name = lab.namespace(host)
        command("ip", "netns", "add", name)
        command("ip", "link", "add", name, "type", "veth", "peer", "name", "mgmt0", "netns", name)
        command("ip", "link", "set", name, "master", lab.bridge, "up")
        _ip_in(lab, host, "link set lo up")
        _ip_in(lab, host, f"address add {lab.management(host)}/24 dev mgmt0")
        _ip_in(lab, host, "link set mgmt0 up")
    for near, far, interface in (("left", "dut", "data0"), ("right", "dut", "data1")):
        peer = f"peer name {interface} netns {lab.namespace(far)}"
        _ip_in(lab, near, f"link add data0 type veth {peer}")


def _configure_hosts(lab: Lab) -> None:
    """Sets addresses and routes of the outer hosts; on the device under test only the links are up."""
    for host in MANAGEMENT_NUMBER:
        # Only the packets of a test may be on the data links: no automatic address, no router solicitation.
        _in(lab, host, "sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1", "net.ipv4.ip_forward=0")
        for link in lab.links(host):
            if host != "dut":
                _ip_in(lab, host, f"link set {link.interface} addrgenmode none")
                name = f"net.ipv6.conf.{link.interface}"
                _in(lab, host, "sysctl", "-qw", f"{name}.disable_ipv6=0", f"{name}.accept_ra=0")
                _ip_in(lab, host, f"address add {link.address} dev {link.interface}")
                _ip_in(lab, host, f"address add {link.address6} dev {link.interface} nodad")
            _ip_in(lab, host, f"link set {link.interface} up")
        for route in lab.routes(host):
            _ip_in(lab, host, f"route add {route['to']} via {route['via']}")
    set_congestion_control(lab)


def set_congestion_control(lab: Lab) -> None:
    """Sets the congestion control of all hosts, whatever the machine's default is."""
    with congestion.allowed(CONGESTION_CONTROL):
        for host in MANAGEMENT_NUMBER:
            _in(lab, host, "sysctl", "-qw", f"net.ipv4.tcp_congestion_control={CONGESTION_CONTROL}")


def _common_variables(lab: Lab) -> dict[str, str]:
    return {
        "meson": str(ROOT / ".venv" / "bin" / "meson"),
        "lab_root": str(lab.root),
        "machine_network": str(lab.machine_network),
    }


def _install_guard(lab: Lab) -> None:
    """Installs the guard for all hosts, which share the file system; again on a running lab, because modules may
    have changed.
    """
    links = sorted({link.interface for host in MANAGEMENT_NUMBER for link in lab.links(host)})
    guard.install(Path(lab.guard), guard.files(links, **_common_variables(lab)))


def _start_ssh_servers(lab: Lab) -> None:
    Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    for host in MANAGEMENT_NUMBER:
        config = lab.state / f"sshd-{host}.conf"
        config.write_text(SSHD_CONFIG.format(address=lab.management(host), keys=lab.keys, host=host), encoding="utf-8")
        argv = ["ip", "netns", "exec", lab.namespace(host), "/usr/sbin/sshd", "-D", "-e", "-f", str(config)]
        processes.spawn(argv, pid_file=lab.pid_file(host), log=lab.state / f"sshd-{host}.log", cwd=Path("/"))
    for host in MANAGEMENT_NUMBER:
        wait_for_login(lab, host, lab.state / f"sshd-{host}.log", 10)


def _write_inventory(lab: Lab) -> None:
    """Assigns different CPUs to the two ends where there are two, always the same ones."""
    cpus = sorted(os.sched_getaffinity(0))
    common = _common_variables(lab)
    hosts: dict[str, dict[str, object]] = {host: {"cpus": [cpus[0]]} for host in MANAGEMENT_NUMBER}
    hosts["dut"] = {"cpus": [cpus[-1]], "cpus_alone": list(cpus)}
    write_emulating(lab, common)
    write_inventory(lab, common, hosts)


def _namespaces() -> set[str]:
    return {entry["name"] for entry in json.loads(command("ip", "-j", "netns", "list") or "[]")}


def status(lab: Lab) -> dict[str, bool]:
    """Returns whether each host has its links and its SSH server."""
    existing = _namespaces()
    answer = {}
    for host in MANAGEMENT_NUMBER:
        links = ""
        if lab.namespace(host) in existing:
            links = command("ip", "-n", lab.namespace(host), "-br", "link")
        # A stack may hold the links of the device under test; they exist if their other ends do.
        wanted = ["mgmt0@", *(f"{link.interface}@" for link in lab.links(host) if host != "dut")]
        answer[host] = all(word in links for word in wanted) and processes.running(lab.pid_file(host)) is not None
    return answer


def _is_up(lab: Lab) -> bool:
    """Reports an inventory with another network number, from an earlier lab of this name."""
    if (
        not lab.simulator.exists()
        or not lab.counter.exists()
        or not lab.inventory.exists()
        or f"ansible_host: {lab.management('dut')}\n" not in lab.inventory.read_text()
    ):
        return False
    return all(status(lab).values())


def _other_owner(lab: Lab) -> Path | None:
    """Returns the directory of another user's lab of this name."""
    if not lab.owner_file.exists():
        return None
    other = Path(lab.owner_file.read_text(encoding="utf-8"))
    if other == lab.state or not any(status(dataclasses.replace(lab, state=other)).values()):
        return None
    return other


def up(lab: Lab) -> None:
    """Starts the lab unless it is up; removes it again after an error."""
    if os.geteuid() != 0:
        raise LabError("network namespaces need root: run this with sudo")
    with _exclusive():
        if _is_up(lab):
            _install_guard(lab)
            return
        if other := _other_owner(lab):
            raise LabError(
                f"a lab named {lab.name} is in use, with its files in {other}: choose another name with --name "
                f"(./dev: PERFWEB_LAB_NAME), or take that one down with `./dev stop` there"
            )
        _take_down(lab)
        _require_means(lab)
        lab.owner_file.write_text(str(lab.state), encoding="utf-8")
        lab.state.mkdir(parents=True, exist_ok=True, mode=0o700)
        try:
            _make_network(lab)
            _configure_hosts(lab)
            make_keys(lab)
            _install_guard(lab)
            _start_ssh_servers(lab)
            _write_inventory(lab)
            give_to_caller(lab)
        except BaseException:
            _take_down(lab)
            raise


def down(lab: Lab) -> None:
    """Removes everything that `up` made and ends all processes on the hosts.

    A lab of this name that is up for another directory belongs to another user and stays.
    """
    with _exclusive():
        if _other_owner(lab) is None:
            _take_down(lab)


def _take_down(lab: Lab) -> None:
    existing = _namespaces()
    end_ssh_connections(lab)
    for host in MANAGEMENT_NUMBER:
        processes.stop(lab.pid_file(host), grace=0)
        if lab.namespace(host) in existing:
            _kill_everything_in(lab, host)
            command("ip", "netns", "delete", lab.namespace(host))
    links = {entry["ifname"] for entry in json.loads(command("ip", "-j", "link"))}
    for name in (*map(lab.namespace, MANAGEMENT_NUMBER), lab.bridge):
        if name in links:
            # The kernel removes a namespace, with its links, some time later.
            command("ip", "link", "delete", name, check=False)
    _remove_state(lab)


def _kill_everything_in(lab: Lab, host: str) -> None:
    """Removes the namespace with all its processes."""
    deadline = time.monotonic() + 5
    while numbers := command("ip", "netns", "pids", lab.namespace(host)).split():
        if time.monotonic() > deadline:
            raise LabError(f"processes on {lab.namespace(host)} do not end: {' '.join(numbers)}")
        for found in filter(None, (processes.identify(int(number)) for number in numbers)):
            processes.signal_process(found, signal.SIGKILL)
            processes.wait_until_gone(found, 1)


def _remove_state(lab: Lab) -> None:
    lab.owner_file.unlink(missing_ok=True)
    if lab.machine_network.exists():
        command("umount", str(lab.machine_network), check=False)
        lab.machine_network.unlink()
    for directory in (lab.root, Path(lab.guard)):
        shutil.rmtree(directory, ignore_errors=True)
    remove_state(lab, "sshd-*")


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line; see the top of this file."""
    parser = argparse.ArgumentParser(prog="runners.labs.netlab", description="A lab of three network namespaces.")
    parser.add_argument("verb", choices=("up", "down", "status"))
    parser.add_argument("--name", default="demo", help="prefix of everything the lab is made of (%(default)s)")
    parser.add_argument("--net", type=int, default=77, help="the lab uses 10.NET.0.0/16 (%(default)s)")
    parser.add_argument("--state", type=Path, default=ROOT / "var" / "lab", help="directory for keys and inventory")
    options = parser.parse_args(arguments)
    try:
        lab = Lab(options.name, options.net, options.state.absolute())
        if options.verb == "status":
            answer = status(lab)
            for host, there in answer.items():
                print(f"{lab.namespace(host)}: {'up' if there else 'down'}")
            return 0 if all(answer.values()) else 1
        (up if options.verb == "up" else down)(lab)
    except (LabError, OSError, RuntimeError) as error:
        print(f"netlab: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
