#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Reports what a result depends on besides the code: kernel, CPU, frequency, mitigations, tools.

Ansible's own facts take seconds to gather and have hundreds of entries that do not matter here. These facts can explain
a difference.
"""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from ansible.module_utils.linux import OFFLOADS, parse_offloads
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.sandbox import has_user_namespaces, problem
from ansible.module_utils.tunnels import INTERFACE, TUNNELS

DOCUMENTATION = """
module: host_environment
short_description: describe a host of the lab, and check that it can be used
options:
  tools:
    description: Programs that must be there.
    type: list
    elements: str
    required: true
  links:
    description: Data links that must be there; see the inventory.
    type: list
    elements: dict
    required: true
  uid:
    description: User and group id of what is built and measured, which runs in a sandbox.
    type: int
    required: true
  addressed:
    description: Whether the data links must have their addresses already, as on the outer hosts.
    type: bool
    required: true
  tunnels:
    description: Kinds of tunnels of which this host is to make an end.
    type: list
    elements: str
    choices: [gif, gre]
    default: []
"""

RETURN = """
environment:
  description: Names and values, all strings, numbers or lists of them.
  type: dict
lacking:
  description: Why each of C(tunnels) that this host cannot make is not to be had.
  type: list
"""

VERSION_COMMANDS = {
    "bubblewrap": ["bwrap", "--version"],
    "netperf": ["netperf", "-V"],
    "iperf3": ["iperf3", "--version"],
    "ethtool": ["ethtool", "--version"],
    "iproute2": ["ip", "-V"],
}


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _output(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=5)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout + done.stderr


def versions() -> dict[str, str]:
    """Returns the first line of each tool's version output."""
    lines = {name: _output(argv).strip().splitlines() for name, argv in VERSION_COMMANDS.items()}
    return {name: found[0] for name, found in lines.items() if found}


def link_facts(interface: str) -> dict[str, str]:
    """Returns MTU, driver and offloads of an interface."""
    settings = parse_offloads(_output(["ethtool", "-k", interface]))
    driver = re.search(r"^driver: (.*)$", _output(["ethtool", "-i", interface]), re.MULTILINE)
    facts = {"mtu": _read(f"/sys/class/net/{interface}/mtu"), "driver": driver.group(1) if driver else ""}
    return facts | {name: settings[name].state for name in OFFLOADS.values() if name in settings}


def environment(links: list[dict[str, str]], uid: int) -> dict[str, Any]:
    """Returns all facts of this host."""
    cpu_info = _read("/proc/cpuinfo")
    model = re.search(r"^model name\s*: (.*)$", cpu_info, re.MULTILINE)
    mitigations = sorted(Path("/sys/devices/system/cpu/vulnerabilities").glob("*"))
    return {
        "hostname": platform.node(),
        "kernel": f"{platform.system()} {platform.release()} {platform.version()}",
        "architecture": platform.machine(),
        "cpu_model": model.group(1) if model else platform.processor(),
        "cpus": os.cpu_count(),
        "memory_kib": int((re.search(r"^MemTotal:\s+(\d+)", _read("/proc/meminfo"), re.MULTILINE) or ["", "0"])[1]),
        "governor": _read("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor") or "not controlled by this kernel",
        "clocksource": _read("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "mitigations": {entry.name: _read(str(entry)) for entry in mitigations},
        "command_line": _read("/proc/cmdline"),
        "congestion_control": _read("/proc/sys/net/ipv4/tcp_congestion_control"),
        "sandbox": "bubblewrap" + ("" if has_user_namespaces(uid) else ", no user namespace of its own"),
        "links": {link["interface"]: link_facts(link["interface"]) for link in links},
        "versions": versions(),
    }


def lacking(kinds: list[str]) -> list[str]:
    """Returns the tunnels that the kernel cannot make, each with the error and what to do."""
    found = []
    for tunnel in map(TUNNELS.__getitem__, kinds):
        # In a network namespace that ends with the attempt.
        made = ["ip", "link", "add", INTERFACE, "type", *tunnel.linux, "remote", "192.0.2.1"]
        done = subprocess.run(["unshare", "--net", "--", *made], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            found.append(
                f"its kernel makes no tunnel {tunnel.kind} ({done.stderr.strip()}): have one with the "
                f"module {tunnel.module}, or leave the tests of such tunnels out"
            )
    return found


def problems(module: Module) -> list[str]:
    """Returns why this host cannot be used; each problem with what to do."""
    found = [
        f"{tool} is not installed: install it, or correct PATH"
        for tool in module.params["tools"]
        if not module.get_bin_path(tool)
    ]
    for link in module.params["links"]:
        name, addresses = link["interface"], [link[key] for key in ("address", "address6") if key in link]
        code, out, _ = module.run_command(["ip", "-br", "address", "show", "dev", name])
        if code != 0:
            found.append(f"no interface {name}: correct data_links of this host in the inventory")
            continue
        found += [
            f"{name} does not have the address {address}: give it that, or correct the inventory"
            for address in addresses
            if module.params["addressed"] and address not in out.split()
        ]
    if os.geteuid() != 0:
        found.append("this is not root: set ansible_user or ansible_become in the inventory")
    elif not found and (why := problem(module.params["uid"])):
        found.append(
            f"no program can be kept in a sandbox here ({why}): this needs mounts and namespaces of PIDs and networks, "
            "which a container may be kept from (CAP_SYS_ADMIN), a root that is a mount point, and a user id "
            f"{module.params['uid']}; if the host has none such, give stack_uid in the inventory"
        )
    return found


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "tools": {"required": True},
            "links": {"required": True},
            "uid": {"required": True},
            "addressed": {"required": True},
            "tunnels": {"default": []},
        },
    )
    checked(module, "host_environment")
    found = problems(module)
    if found:
        module.fail_json(msg="; ".join(found))
    facts = environment(module.params["links"], module.params["uid"])
    module.exit_json(changed=False, environment=facts, lacking=lacking(module.params["tunnels"]))


if __name__ == "__main__":
    main()
