# SPDX-License-Identifier: BSD-2-Clause
"""Labs of namespaces for tests: each in a network and under a name that no other lab has."""

from __future__ import annotations

import json
import os
import random
import subprocess
from pathlib import Path

from runners import netlab
from runners.labs import LabError
from runners.netlab import Lab

NETWORKS = range(100, 240)


def free_network() -> int:
    """A number N for which the machine has no address in 10.N.0.0/16."""
    listed = subprocess.run(["ip", "-j", "-4", "address"], capture_output=True, text=True, check=True).stdout
    addresses = [address["local"] for interface in json.loads(listed) for address in interface["addr_info"]]
    free = [net for net in NETWORKS if not any(address.startswith(f"10.{net}.") for address in addresses)]
    if free:
        # By chance, as other tests may look at the same time.
        return random.choice(free)
    raise LabError(
        f"the networks 10.{NETWORKS.start} to 10.{NETWORKS.stop - 1} are all taken: take down labs that nobody needs"
    )


def raise_lab(letter: str, state: Path) -> Lab:
    """Raises a lab whose files are in `state`; another one that is raised meanwhile may take the network first."""
    while True:
        lab = Lab(f"{letter}{os.getpid()}"[:9], free_network(), state)
        try:
            netlab.up(lab)
        except LabError as error:
            if "choose another network" not in str(error):
                raise
        else:
            return lab
