# SPDX-License-Identifier: BSD-2-Clause
"""Labs of namespaces for tests: each with its own network and name."""

from __future__ import annotations

import fcntl
import json
import os
import random
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runners.labs import netlab
from runners.labs.common import LabError
from runners.labs.netlab import Lab

NETWORKS = range(100, 240)
RESERVED = Path("/run/perfweb/networks")
"""A file for each network, which is locked by the test that uses the network."""


def _addresses() -> set[int]:
    """The numbers N for which the machine has an address in 10.N.0.0/16."""
    listed = subprocess.run(["ip", "-j", "-4", "address"], capture_output=True, text=True, check=True).stdout
    addresses = [address["local"] for interface in json.loads(listed) for address in interface["addr_info"]]
    return {int(address.split(".")[1]) for address in addresses if address.startswith("10.")}


@contextmanager
def free_network() -> Iterator[int]:
    """A number N for which the machine has no address in 10.N.0.0/16; no other test gets it until the context ends."""
    RESERVED.mkdir(parents=True, exist_ok=True)
    candidates = list(set(NETWORKS) - _addresses())
    random.shuffle(candidates)
    for number in candidates:
        with (RESERVED / str(number)).open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                continue
            # Another test may have raised its lab and ended its reservation since the addresses were read.
            if number not in _addresses():
                yield number
                return
    raise LabError(
        f"the networks 10.{NETWORKS.start} to 10.{NETWORKS.stop - 1} are all taken: take down labs that nobody needs"
    )


def raise_lab(letter: str, state: Path) -> Lab:
    """Start a lab whose files are in `state`."""
    with free_network() as number:
        lab = Lab(f"{letter}{os.getpid()}"[:9], number, state)
        netlab.up(lab)
        return lab
