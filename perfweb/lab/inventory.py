# SPDX-License-Identifier: BSD-2-Clause
"""The testbed of an Ansible inventory: its hosts, data addresses and CPUs.

Ansible itself reads it, so that group variables, host variables and other formats work.
"""

import ipaddress
import json
import subprocess
import sys
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfweb.lab.models import Role
from perfweb.lab.origins import Origin

ANSIBLE_SECONDS = 180


class InventoryError(ValueError):
    """The inventory does not describe a testbed; the message names the missing part."""


@dataclass(frozen=True)
class InventoryHost:
    """Addresses of data links without prefix length, in the order of the links. `cpus` is a list for taskset(1),
    `cpus_alone` without those of the testbed's other hosts.

    A testbed without IPv6 has no `data_addresses6`. `console_log` is a file on the controller, if there is one.
    `command_line_words` are the kernel parameters that plans may add, None for the default list. A host that `counts`
    builds kernels and boots them in an emulator.
    """

    role: str
    name: str
    address: str
    data_addresses: tuple[str, ...]
    data_addresses6: tuple[str, ...]
    cpus: str
    cpus_alone: str
    console_log: str = ""
    command_line_words: tuple[str, ...] | None = None
    counts: bool = False

    def data_address(self, family: str) -> str:
        """Return the address of this host for tests of a family. Raises InventoryError."""
        addresses = self.data_addresses if family == "ipv4" else self.data_addresses6
        if not addresses:
            raise InventoryError(f"host {self.name} has no {family}: give each of its data_links an address6")
        return addresses[0]


def read_inventory(path: Path) -> dict[str, InventoryHost]:
    """Return the hosts of an inventory by role: all three, or dut alone. Raises InventoryError."""
    if not path.is_file():
        raise InventoryError(f"{path}: there is no such inventory; raise the lab or give another path")
    program = Path(sys.executable).parent / "ansible-inventory"
    try:
        done = subprocess.run(
            [program, "--inventory", path, "--list"],
            capture_output=True,
            text=True,
            timeout=ANSIBLE_SECONDS,
            check=True,
        )
        listing = json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        raise InventoryError(f"{path}: {error.stderr.strip()[-500:]}") from None
    except (subprocess.TimeoutExpired, ValueError) as error:
        raise InventoryError(f"{path}: ansible-inventory did not answer: {error}") from None
    alone = _is_alone(listing)
    roles = [Role.DUT.value] if alone else Role.values
    return {role: _read_host(path, role, listing, wired=not alone) for role in roles}


def origin_of(hosts: Mapping[str, InventoryHost]) -> Origin:
    """Return how results of these hosts come about: none are measured if no host can send to dut."""
    if not _is_alone(hosts):
        return Origin.MEASURED
    return Origin.COUNTED if hosts[Role.DUT].counts else Origin.SIMULATED


def _is_alone(groups: Container[str]) -> bool:
    """Return whether no host can send to dut."""
    return Role.DUT in groups and Role.LEFT not in groups and Role.RIGHT not in groups


def _read_host(path: Path, role: str, listing: dict[str, Any], *, wired: bool) -> InventoryHost:
    names = listing.get(role, {}).get("hosts", [])
    if len(names) != 1:
        raise InventoryError(f"{path}: group {role!r} has {len(names)} hosts; it must have exactly one")
    variables = listing["_meta"]["hostvars"].get(names[0], {})
    links, counts = variables.get("data_links", []), variables.get("counts", False)
    if type(counts) is not bool or (counts and wired):
        raise InventoryError(
            f"{path}: host {names[0]} has counts: {counts}; it is true for dut alone, without left and right"
        )
    wanted = (2 if role == Role.DUT else 1) if wired else 0
    if not isinstance(links, list) or len(links) != wanted:
        alone = "" if wired else ", since it is alone, without left and right"
        raise InventoryError(
            f"{path}: host {names[0]} needs data_links with {wanted} entries of interface and address{alone}"
        )
    try:
        addresses = tuple(str(ipaddress.IPv4Interface(link["address"]).ip) for link in links)
        addresses6 = tuple(str(ipaddress.IPv6Interface(link["address6"]).ip) for link in links if "address6" in link)
    except (KeyError, TypeError, ValueError) as error:
        raise InventoryError(f"{path}: host {names[0]} has a bad address in data_links: {error}") from None
    if len(addresses6) not in (0, wanted):
        raise InventoryError(f"{path}: host {names[0]} has an address6 on some of its data_links only")
    return InventoryHost(
        role=role,
        name=names[0],
        address=str(variables.get("ansible_host", names[0])),
        data_addresses=addresses,
        data_addresses6=addresses6,
        cpus=_for_taskset(variables.get("cpus", [])),
        cpus_alone=_for_taskset(variables.get("cpus_alone", variables.get("cpus", []))),
        console_log=str(variables.get("console_log", "")),
        command_line_words=_words(path, names[0], variables.get("command_line_words")),
        counts=counts,
    )


def _words(path: Path, name: str, words: list[str] | None) -> tuple[str, ...] | None:
    if words is None:
        return None
    if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
        raise InventoryError(f"{path}: command_line_words of host {name} is no list of names, such as [nosmt]")
    return tuple(words)


def _for_taskset(cpus: list[int]) -> str:
    return ",".join(map(str, cpus))
