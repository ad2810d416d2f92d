#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Assigns the data links of the device under test to the stack, to the kernel, or to neither.

The stack gets a network namespace that holds only the links, so that it reaches only the hosts at their other ends. The
namespace has a TAP device for each link, tap0 for the first, with several queues and a virtio header in front of each
frame. An ordinary user owns it. Two redirects (tc-mirred(8)) join it to the link in both directions. They work on whole
segments, so segmentation and checksum offload survive. They take each frame before the kernel's own protocols see it.

The kernel gets addresses of both families and forwards between the links.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

from ansible.module_utils import beneath
from ansible.module_utils.linux import SettingError, Sysctl
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.remembered import damaged, forget, sysctl_of, texts, write_durably

DOCUMENTATION = """
module: data_path
short_description: say who owns the data links of the device under test
options:
  owner:
    description: Who gets the links. C(nobody) undoes everything.
    choices: [stack, kernel, nobody]
    required: true
  links:
    description: For each link its C(interface), and the C(address) and perhaps the C(address6), with prefix length,
      that the device has there.
    type: list
    elements: dict
    required: true
  uid:
    description: The user who may open the TAP devices.
    type: int
    required: true
  memory:
    description: A file that keeps what has to be restored.
    type: path
    required: true
  namespace:
    description: A file that is the stack's network namespace while the stack has the links.
    type: path
    required: true
"""

RETURN = """
taps:
  description: The TAP devices, in the order of the links; none for the kernel.
  type: list
"""

FORWARDING = Sysctl("net.ipv4.ip_forward")
FORWARDING6 = Sysctl("net.ipv6.conf.all.forwarding")
OWN6 = re.compile(r"net\.ipv6\.conf\.[^.]+\.(accept_dad|disable_ipv6)")
TUN = Path("/dev/net/tun")


class DataPath:
    """The data links of one host; every method works in any state."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.uid: int = module.params["uid"]
        self.links: list[dict[str, str]] = module.params["links"]
        self.memory = Path(module.params["memory"])
        self.namespace = Path(module.params["namespace"])
        self.inside = ["nsenter", f"--net={self.namespace}", "--"]

    def run(self, *argv: str, check: bool = True) -> str:
        """Runs a tool; fails the module with its error message."""
        code, out, err = self.module.run_command(list(argv))
        if check and code != 0:
            self.module.fail_json(msg=f"`{' '.join(argv)}` failed: {err.strip() or out.strip()}")
        return str(out)

    def check_interfaces(self) -> None:
        """Refuses a link that is used for something else, because taking it would cut that off."""
        for link in self.links:
            name = link["interface"]
            code, out, _ = self.module.run_command(["ip", "-j", "address", "show", "dev", name])
            if code != 0:
                self.module.fail_json(msg=f"no interface {name}: correct data_links of this host in the inventory")
            for address in json.loads(out)[0]["addr_info"]:
                there = f"{address['local']}/{address['prefixlen']}"
                if address["family"] == "inet" and there != link["address"]:
                    self.module.fail_json(
                        msg=f"{name} has the address {there}; a data link of the device under test has none of "
                        f"its own: remove the address, or correct data_links of this host in the inventory"
                    )

    def release(self) -> None:
        """Takes the links away from the kernel."""
        for link in self.links:
            name = link["interface"]
            self.run("ip", "address", "flush", "dev", name)
            disabled, before = self.own6(link, "disable_ipv6"), self.remembered()
            if disabled in before:
                disabled.write(before[disabled])

    def leave_namespace(self) -> None:
        """Moves the links out of the stack's namespace; the namespace and its devices end with its last program."""
        if os.path.ismount(self.namespace):
            for name in (link["interface"] for link in self.links):
                # A link that is not there has been moved already.
                self.run(*self.inside, "tc", "qdisc", "del", "dev", name, "clsact", check=False)
                self.run(*self.inside, "ip", "link", "set", "dev", name, "promisc", "off", check=False)
                self.run(*self.inside, "ip", "link", "set", "dev", name, "netns", str(os.getpid()), check=False)
                self.run("ip", "link", "set", "dev", name, "up")
            self.run("umount", str(self.namespace))
        self.namespace.unlink(missing_ok=True)

    def settings(self) -> list[Sysctl]:
        """Settings of a host that `give_to_kernel` changes."""
        links = [link for link in self.links if "address6" in link]
        names = ("accept_dad", "disable_ipv6")
        return [FORWARDING, *([FORWARDING6] if links else []), *(self.own6(link, n) for link in links for n in names)]

    def own6(self, link: dict[str, str], name: str) -> Sysctl:
        """The path of an IPv6 setting of an interface."""
        return Sysctl(f"net.ipv6.conf.{link['interface'].replace('.', '/')}.{name}")

    def remember(self) -> None:
        """Saves the host's settings before the first change."""
        if texts(self.memory) is None:
            write_durably(self.memory, json.dumps({str(setting.path): setting.read() for setting in self.settings()}))

    def remembered(self) -> dict[Sysctl, str]:
        """Returns what `remember` saved: settings that this module changes, and their values."""
        found = {sysctl_of(path): value for path, value in (texts(self.memory) or {}).items()}
        if not all(self.is_own(setting) and re.fullmatch(r"-?[0-9]", value) for setting, value in found.items()):
            raise damaged(self.memory)
        return found

    def is_own(self, setting: Sysctl) -> bool:
        """Returns whether this module changes such a setting."""
        return setting in {FORWARDING, FORWARDING6} or OWN6.fullmatch(setting.name) is not None

    def restore(self) -> None:
        """Restores what `remember` saved."""
        for setting, value in self.remembered().items():
            setting.write(value)
        forget(self.memory)

    def open_to_users(self) -> None:
        """Lets ordinary users open the TUN device, as udev does; without udev only root can.

        Users gain only the TAP devices that root made for them, because making one needs a capability. The permission
        stays, since another testbed's stack on this machine may be about to open the device.
        """
        try:
            mode = TUN.stat().st_mode
            if mode & 0o006 != 0o006:
                TUN.chmod(mode | 0o006)
        except OSError as error:
            self.module.fail_json(msg=f"{TUN}: {error.strerror}; load the kernel module tun, or pass the device in")

    def give_to_stack(self) -> list[str]:
        """Moves the links into a namespace, makes the TAP devices there and connects them."""
        self.open_to_users()
        with beneath.opened("/", beneath.absolute(self.namespace), os.O_RDONLY | os.O_CREAT):
            pass
        self.run("unshare", f"--net={self.namespace}", "--", "true")
        # The kernel must not send anything of its own, neither to the stack nor to the links.
        without_ipv6 = [f"net.ipv6.conf.{which}.disable_ipv6=1" for which in ("all", "default")]
        self.run(*self.inside, "sysctl", "--quiet", "--ignore", "--write", *without_ipv6)
        taps = []
        for index, link in enumerate(self.links):
            name, tap = link["interface"], f"tap{index}"
            self.run("ip", "link", "set", "dev", name, "netns", str(self.namespace))
            words = ["ip", "tuntap", "add", "dev", tap, "mode", "tap", "user", str(self.uid)]
            self.run(*self.inside, *words, "multi_queue", "vnet_hdr")
            self.run(*self.inside, "ip", "link", "set", tap, "mtu", self.mtu(name), "up")
            # The stack has its own hardware address, which a real card would filter out.
            self.run(*self.inside, "ip", "link", "set", name, "up", "promisc", "on")
            self.redirect(name, tap)
            self.redirect(tap, name)
            taps.append(tap)
        return taps

    def mtu(self, interface: str) -> str:
        """Returns the MTU of an interface of the stack's namespace, in bytes."""
        return str(json.loads(self.run(*self.inside, "ip", "-j", "link", "show", "dev", interface))[0]["mtu"])

    def redirect(self, source: str, target: str) -> None:
        """Redirects every frame received on `source` to the output of `target`."""
        self.run(*self.inside, "tc", "qdisc", "add", "dev", source, "clsact")
        match = ["protocol", "all", "u32", "match", "u32", "0", "0"]
        action = ["action", "mirred", "egress", "redirect", "dev", target]
        self.run(*self.inside, "tc", "filter", "add", "dev", source, "ingress", *match, *action)

    def give_to_kernel(self) -> None:
        """Gives the kernel the addresses and enables forwarding."""
        for link in self.links:
            self.run("ip", "address", "add", link["address"], "dev", link["interface"])
            self.run("ip", "link", "set", link["interface"], "up")
            if "address6" in link:
                # Duplicate address detection is off, so that a run does not wait for it. Forwarding needs a link-local
                # address for neighbour discovery.
                self.own6(link, "accept_dad").write("0")
                self.own6(link, "disable_ipv6").write("0")
                self.run("ip", "address", "add", link["address6"], "dev", link["interface"])
                FORWARDING6.write("1")
        FORWARDING.write("1")


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "owner": {"required": True},
            "links": {"required": True},
            "uid": {"required": True},
            "memory": {"required": True},
            "namespace": {"required": True},
        },
    )
    checked(module, "data_path")
    try:
        taps = give(DataPath(module), module.params["owner"])
    except (SettingError, OSError, ValueError) as error:
        module.fail_json(msg=f"the data links could not be handed over: {error}")
    module.exit_json(changed=True, taps=taps)


def give(path: DataPath, owner: str) -> list[str]:
    """Hands the links to their new owner; returns the TAP devices."""
    taps: list[str] = []
    path.leave_namespace()
    path.check_interfaces()
    if owner != "nobody":
        path.remember()
    path.release()
    if owner == "stack":
        taps = path.give_to_stack()
    elif owner == "kernel":
        path.give_to_kernel()
    else:
        path.restore()
    return taps


if __name__ == "__main__":
    main()
