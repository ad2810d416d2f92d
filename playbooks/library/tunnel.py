#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Makes this host's end of a tunnel between left and the device under test, or removes it.

The interface is an ordinary Linux interface, bound to the first data link. Its MTU is the link's less the outer
headers, so that no packet that fits into the tunnel is fragmented outside. It is made anew at each call, because the
MTU of its link may have changed.
"""

from __future__ import annotations

from typing import Any

from ansible.module_utils.linux import DEVICES, Mtu, SettingError, Sysctl, run
from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked
from ansible.module_utils.tunnels import INTERFACE, TUNNELS, Tunnel

DOCUMENTATION = """
module: tunnel
short_description: make an end of a tunnel on this host, or take it away
options:
  kind:
    description: C(gif), which is IP in IP, or C(gre); C(none) takes away what is there and needs nothing else.
    choices: [gif, gre, none]
    required: true
  role:
    description: Which end this host is.
    choices: [left, dut]
  link:
    description: The data link that outer packets go by.
    type: str
  ours:
    description: This host's IPv4 address on the link.
    type: str
  theirs:
    description: That of the other end.
    type: str
"""

RETURN = """
far:
  description: What the other end needs of this one, by the names that the stack has for it, C(tunnel), C(inet),
    C(inet6) and C(mtu).
  type: dict
"""


def make(tunnel: Tunnel, params: dict[str, Any]) -> int:
    """Makes the interface; returns its MTU.  Raises SettingError."""
    mtu: int = int(Mtu("mtu", params["link"]).read()) - tunnel.overhead
    ends = ["local", params["ours"], "remote", params["theirs"], "ttl", "64", "dev", params["link"]]
    run("ip", "link", "add", INTERFACE, "mtu", str(mtu), "type", *tunnel.linux, *ends)
    # No address is configured automatically, and no router is solicited.
    run("ip", "link", "set", INTERFACE, "addrgenmode", "none")
    run("ip", "address", "add", tunnel.address(params["role"]), "dev", INTERFACE)
    settings = [Sysctl(f"net.ipv6.conf.{INTERFACE}.{name}") for name in ("accept_ra", "disable_ipv6")]
    if settings[0].path.exists():
        for setting in settings:
            setting.write("0")
        run("ip", "address", "add", tunnel.address6(params["role"]), "dev", INTERFACE, "nodad")
    run("ip", "link", "set", INTERFACE, "up")
    return mtu


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "kind": {"required": True},
            "role": {},
            "link": {},
            "ours": {},
            "theirs": {},
        },
        required_if=[("kind", kind, ("role", "link", "ours", "theirs")) for kind in TUNNELS],
        supports_check_mode=True,
    )
    params: dict[str, Any] = checked(module, "tunnel")
    there = (DEVICES / INTERFACE).exists()
    tunnel = TUNNELS.get(params["kind"])
    if module.check_mode:
        module.exit_json(changed=there or tunnel is not None, far={})
    far: dict[str, object] = {}
    try:
        if there:
            run("ip", "link", "delete", INTERFACE)
        if tunnel is not None:
            mtu, other = make(tunnel, params), "left" if params["role"] == "dut" else "dut"
            far = {
                "tunnel": f"{params['theirs']} {params['ours']}",
                "inet": tunnel.address(other),
                "inet6": tunnel.address6(other),
                "mtu": mtu,
            }
    except (SettingError, OSError) as error:
        module.fail_json(msg=f"no tunnel {params['kind']} on this host: {error}")
    module.exit_json(changed=there or tunnel is not None, far=far)


if __name__ == "__main__":
    main()
