# SPDX-License-Identifier: BSD-2-Clause
"""unixbench, which is part of the stack: its client starts a load within the server over UNIX domain sockets."""

import re

from perfweb.measuring.tools.base import SERVER_PORTS, Value, only, positive
from perfweb.runs.catalogue import Measure

_RATE = re.compile(r"^(?P<rate>\S+) transactions/s$", re.ASCII | re.MULTILINE)


def command(measure: Measure, address: str, seconds: int, prefix: str) -> list[str]:
    """A measure is named after its workload and the number of clients: unix.mysql.8."""
    _, workload, clients = measure.name.split(".")
    server = ["-c", address, "-p", str(SERVER_PORTS["unixbench"])]
    return [f"{prefix}/bin/unixbench", *server, "-w", workload, "-n", clients, "-t", str(seconds)]


def parse(output: str) -> list[Value]:
    """Transactions per second of all clients together, from the line `N transactions/s`."""
    found = only(_RATE, output, "unixbench", "transactions")
    return [Value("transactions", positive(found["rate"], "rate"), "transactions/s", "higher")]
