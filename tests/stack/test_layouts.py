# SPDX-License-Identifier: BSD-2-Clause
"""The layouts of a build are the same code in different places, and they work."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.stack.test_router import ROUTER, send_a_stream
from tests.stack.topology import Installed, Topology, run

FUNCTION = re.compile(r"^([0-9a-f]+) ([0-9a-f]+) [tT] (\S+)$", re.MULTILINE)


def functions(binary: Path) -> dict[str, int]:
    """The functions of a program with their sizes in bytes, in the order of their addresses."""
    found = FUNCTION.findall(run("nm", "--print-size", str(binary)))
    return {name: int(size, 16) for _, size, name in sorted(found, key=lambda line: int(line[0], 16))}


def variables(binary: Path) -> list[str]:
    """The variables that a program writes to, in the order of their addresses."""
    lines = [line.split() for line in run("nm", "--numeric-sort", str(binary)).splitlines()]
    return [words[-1] for words in lines if words[-2] in "bBdD"]


@pytest.mark.parametrize(("usual", "name"), [("lib/libstack.so", "libstack.so"), ("bin/bootstack", "bootstack")])
def test_layouts_have_the_same_code_in_other_places(installed: Installed, usual: str, name: str) -> None:
    own = functions(installed.prefix / usual)
    one, two = (functions(installed.prefix / "layouts" / seed / name) for seed in ("1", "2"))
    assert set(own) == set(one)
    assert one == two
    # A jump to adjacent code may be shorter.
    assert sum(size != one[function] for function, size in own.items()) < len(own) / 50
    assert len({tuple(order) for order in (own, one, two)}) == 3
    first, second = (variables(installed.prefix / "layouts" / seed / name) for seed in ("1", "2"))
    assert first != second
    assert sorted(first) == sorted(second)


def test_what_every_packet_passes_stays_together_in_another_order(installed: Installed) -> None:
    hot = ("ip_input", "ip_output", "ether_input", "if_input", "sendto", "recvfrom", "tcp_input")
    orders = []
    for seed in ("1", "2"):
        order = list(functions(installed.prefix / "layouts" / seed / "libstack.so"))
        places = {name: order.index(name) for name in hot}
        # The library has a thousand functions, and some dozens of these.
        assert max(places.values()) - min(places.values()) < len(order) / 8
        orders.append(sorted(hot, key=places.__getitem__))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("layout", [1, 2])
def test_a_stream_passes_a_router_of_each(topology: Topology, layout: int) -> None:
    child = topology.boot(ROUTER, layout=layout)
    assert Path(f"/proc/{child.pid}/exe").resolve().parts[-3:] == ("layouts", str(layout), "bootstack")
    send_a_stream(topology)


def test_a_program_gets_the_library_of_its_layout(topology: Topology) -> None:
    child = topology.boot({}, ["netserver", "-D", "-f", "-4"], layout=2)
    assert "/layouts/2/libstack.so" in Path(f"/proc/{child.pid}/maps").read_text(encoding="ascii")
    topology.await_port(12865)
    assert "TCP REQUEST/RESPONSE" in topology.on("left", "netperf", "-H", "10.99.0.2", "-l", "1", "-t", "TCP_RR")
