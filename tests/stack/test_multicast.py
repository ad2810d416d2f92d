# SPDX-License-Identifier: BSD-2-Clause
"""Multicast between a program on the stack and Linux, of both families, and the reports that Linux receives."""

from __future__ import annotations

import re
import sys

from tests.stack.topology import PYTHON, Topology

BOOT = {"if.tap0.inet6": "2001:db8::2/64", "net.inet6.ip6.dad_count": "0"}

# Joins a group of each family, and sends each datagram back to the group with the next number.
MEMBER = """
import socket, struct
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
four.bind(("", 5000))
join = socket.inet_aton("239.99.1.1") + socket.inet_aton("10.99.0.2")
four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, join)
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.bind(("::", 5001))
join = socket.inet_pton(socket.AF_INET6, "ff05::9901") + struct.pack("@I", 0)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, join)
print("joined", flush=True)
data, sender = four.recvfrom(100)
four.sendto(data + b" from the stack", ("239.99.1.2", 5000))
data, sender = six.recvfrom(100)
six.sendto(data + b" from the stack", ("ff05::9902", 5001))
print("answered", flush=True)
"""

LINUX = """
import socket, struct
four = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
four.bind(("", 5000))
four.settimeout(180)
here = socket.inet_aton("10.99.0.1")
four.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton("239.99.1.2") + here)
four.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, here)
four.sendto(b"four", ("239.99.1.1", 5000))
print(four.recv(100).decode())
index = socket.if_nametoindex("data0")
six = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
six.bind(("::", 5001))
six.settimeout(180)
join = socket.inet_pton(socket.AF_INET6, "ff05::9902") + struct.pack("@I", index)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, join)
six.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
six.sendto(b"six", ("ff05::9901", 5001))
print(six.recv(100).decode())
"""

# Prints the source and group of IGMP reports: the first report with the given group.
REPORTS = """
import socket
sock = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_IGMP)
join = socket.inet_aton("224.0.0.22") + socket.inet_aton("10.99.0.1")
sock.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, join)
sock.settimeout(180)
print("hearing", flush=True)
while True:
    packet, (sender, _) = sock.recvfrom(1000)
    message = packet[(packet[0] & 15) * 4:]
    if sender == "10.99.0.2" and message[0] == 0x22:
        print("type", message[8], "group", socket.inet_ntoa(message[12:16]), flush=True)
        break
"""


def test_groups_of_both_families_reach_linux_and_back(topology: Topology) -> None:
    topology.start("left", sys.executable, "-c", REPORTS, log="reports.log")
    topology.await_line("reports.log", "hearing")
    (topology.directory / "member.py").write_text(MEMBER, encoding="utf-8")
    topology.boot(BOOT, [PYTHON, f"{topology.directory}/member.py"])
    topology.await_line("boot.log", "joined")
    topology.await_line("reports.log", "type 4 group 239.99.1.1")
    assert re.search(r"^tap0 +239\.99\.1\.1 +1 +0$", topology.ask("netstat", "-g"), re.MULTILINE)
    assert topology.on("left", sys.executable, "-c", LINUX) == "four from the stack\nsix from the stack\n"
