#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Waits until a server answers over the data link.

A booted target has a new hardware address, so the old neighbour entry is deleted first.
"""

from __future__ import annotations

import socket
import time
from typing import Any

from ansible.module_utils.module import Module
from ansible.module_utils.parameters import checked

DOCUMENTATION = """
module: reachable
short_description: wait until an address answers
options:
  address:
    description: IPv4 or IPv6 address.
    type: str
    required: true
  port:
    description: A TCP port that must accept a connection; without one an ICMP echo must be answered.
    type: int
  interface:
    description: The data link whose neighbours are forgotten.
    type: str
    required: true
  timeout:
    description: Seconds.
    type: float
    default: 10
"""

RETURN = """
seconds:
  description: How long it took.
  type: float
"""


def connects(address: str, port: int) -> bool:
    """Returns whether a TCP connection is accepted within a second."""
    try:
        socket.create_connection((address, port), timeout=1).close()
    except OSError:
        return False
    return True


def answers_ping(module: Module, address: str) -> bool:
    """Returns whether an ICMP echo gets a reply within a second."""
    code, _, _ = module.run_command(["ping", "-n", "-q", "-c", "1", "-W", "1", address])
    return bool(code == 0)


def main() -> None:
    """Entry point of the module."""
    module = Module(
        argument_spec={
            "address": {"required": True},
            "port": {},
            "interface": {"required": True},
            "timeout": {"default": 10},
        },
    )
    params: dict[str, Any] = checked(module, "reachable")
    address, port, begin = params["address"], params["port"], time.monotonic()
    module.run_command(["ip", "neigh", "flush", "dev", params["interface"]], check_rc=True)
    while not (answers_ping(module, address) if port is None else connects(address, port)):
        if time.monotonic() > begin + params["timeout"]:
            ping = "answers" if answers_ping(module, address) else "does not answer"
            what = "no echo" if port is None else f"no connection to port {port}"
            module.fail_json(msg=f"{what} from {address} within {params['timeout']:g} s ({address} {ping} ping)")
        time.sleep(0.05)
    module.exit_json(changed=False, seconds=time.monotonic() - begin)


if __name__ == "__main__":
    main()
