# SPDX-License-Identifier: BSD-2-Clause
"""Several IPv4 addresses on one interface, with a Linux host that has as many subnets on the link."""

from __future__ import annotations

import re

import pytest

from tests.stack.test_programs import finish
from tests.stack.topology import PYTHON, Topology

OURS = ("10.99.0.2/24", "10.98.0.2/24", "10.99.0.7/24")

# The addresses of a program in each subnet, and the result of querying them (netdevice(7)).
PROGRAM = """
import ctypes, fcntl, socket, struct
def own(to, source=("0.0.0.0", 0)):
    with socket.create_connection((to, 5000), source_address=source) as sock:
        return sock.getsockname()[0], sock.recv(100).decode()
print(own("10.99.0.1"), own("10.98.0.1"), own("10.97.0.1"), own("10.98.0.1", ("10.99.0.7", 0)))
buf = bytearray(40 * 8)
with socket.socket() as sock:
    room = (ctypes.c_char * len(buf)).from_buffer(buf)
    conf = bytearray(struct.pack("iP", len(buf), ctypes.addressof(room)))
    fcntl.ioctl(sock, 0x8912, conf)
count = struct.unpack_from("i", conf)[0]
print([socket.inet_ntoa(buf[at + 20 : at + 24]) for at in range(0, count, 40) if buf[at : at + 4] == b"tap0"])
"""
SERVER = """
import socket
with socket.create_server(("", 5000)) as server:
    print("listening", flush=True)
    while True:
        sock, address = server.accept()
        with sock:
            sock.sendall(address[0].encode())
"""


def test_each_address_is_reached_and_the_subnet_chooses_one(topology: Topology) -> None:
    topology.on("left", "ip", "address", "add", "10.98.0.1/24", "dev", "data0")
    topology.on("left", "ip", "address", "add", "10.97.0.1/32", "dev", "lo")
    topology.start("left", PYTHON, "-c", SERVER, log="server.log")
    topology.await_line("server.log", "listening")
    tunables = {"if.tap0.inet": " ".join(OURS), "route.10.97.0.0/16": "10.98.0.1"}
    output = finish(topology, topology.boot(tunables, [PYTHON, "-c", PROGRAM]), "boot.log")
    sources = ["10.99.0.2", "10.98.0.2", "10.98.0.2", "10.99.0.7"]
    assert " ".join(str((source, source)) for source in sources) in output
    assert str([address.partition("/")[0] for address in OURS]) in output
    topology.boot(tunables)
    assert topology.value("if.tap0.inet") == " ".join(OURS)
    assert re.findall(r"^\tinet (\S+)$", topology.ask("ifconfig"), re.MULTILINE) == ["127.0.0.1/8", *OURS]
    assert re.findall(r"^(\S+) +link +tap0$", topology.ask("route", "show"), re.MULTILINE) == [
        "10.98.0.0/24",
        "10.99.0.0/24",
    ]
    for address in OURS:
        output = topology.on("left", "ping", "-n", "-c", "2", "-i", "0.3", "-W", "5", address.partition("/")[0])
        assert "2 received" in output


def test_a_wrong_list_stops_the_boot(topology: Topology) -> None:
    wrong = {
        "10.99.0.2/24 10.98.0.2": r"loader\.conf:2: '10\.98\.0\.2' is not an address like 10\.1\.0\.2/24",
        "10.99.0.2/24 10.99.0.2/16": r"'10\.99\.0\.2/16' is a duplicate",
    }
    for value, reason in wrong.items():
        with pytest.raises(AssertionError, match=reason):
            topology.boot({"if.tap0.inet": value})
