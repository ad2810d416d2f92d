# SPDX-License-Identifier: BSD-2-Clause
"""Changes that are planted in Linux, with the function that each has to be named by, and its cost.

    python -m tests.counted.planted [GROUP ...]

counts them and prints the table of docs/measured/planted.md; status 1 if one is not as expected. Changes of a group
are in different functions, so they are planted together: a build and three boots for each group instead of each change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from perfweb.counted.comparison import FunctionDifference, LoadComparison
from runners.counted import programs, store
from runners.counted.boot import Machine
from runners.counted.build import Builder
from runners.counted.command import Request, Side, boot_all, compared
from runners.counted.config import fragment
from runners.counted.progress import Progress
from runners.counted.sources import Sources
from tests.counted.sources import diff

ROOT = Path(__file__).resolve().parents[2]
LINUX = ROOT / "var" / "linux"
VAR = ROOT / "var" / "counted"
TCP, UDP = "counted.tcp.rr/local/ipv4", "counted.udp.rr/local/ipv4"
FORWARD = "counted.udp.forward/routed/ipv4"
TCP_IPV4, TCP_INPUT, UDP_C = "net/ipv4/tcp_ipv4.c", "net/ipv4/tcp_input.c", "net/ipv4/udp.c"
RECEIVE = "int tcp_v4_rcv(struct sk_buff *skb)\n"
DATAGRAM = "\treturn __udp4_lib_rcv(skb, &udp_table, IPPROTO_UDP)"
HASH = "\treturn __inet_ehashfn(laddr, lport, faddr, fport,"
FIRST = "\tif (skb->pkt_type != PACKET_HOST)"
NOPS = '\tasm volatile(".rept 10; nop; .endr");\n'
TOLERANCE = 1.0
"""Instructions of a unit by which straight-line code may differ: the compiler may reorder what is around it."""

Edit = Callable[[str], str]


@dataclass(frozen=True)
class Planted:
    """A change of one file. `instructions` and `locked` are what it adds to a unit of `load` in `function`; None is
    more than nothing. Without a function it must be equal everywhere.
    """

    group: str
    name: str
    path: str
    edit: Edit
    load: str = ""
    function: str = ""
    instructions: float | None = 0.0
    locked: float = 0.0

    def found(self, loads: Sequence[LoadComparison]) -> FunctionDifference | None:
        """Return what the function costs more or less under the load."""
        functions = next((load.functions for load in loads if load.name == self.load), ())
        return next((one for one in functions if one.name == self.function), None)

    def is_as_expected(self, loads: Sequence[LoadComparison]) -> bool:
        """Return whether the change is named with its cost; for one without a function, that nothing differs."""
        if not self.function:
            return not any(load.functions for load in loads)
        one = self.found(loads)
        if one is None:
            return False
        near = one.cost.instructions > 0 if self.instructions is None else (
            abs(one.cost.instructions - self.instructions) <= TOLERANCE
        )  # fmt: skip
        return near and abs(one.cost.locked - self.locked) < 1


def before(text: str, place: str, after: str = "") -> Edit:
    """Put a text before a place, which is looked for behind another one."""

    def put(source: str) -> str:
        at = source.index(place, source.index(after))
        return source[:at] + text + source[at:]

    return put


def instead(old: str, new: str, after: str = "") -> Edit:
    """Replace a text, which is looked for behind another one."""

    def put(source: str) -> str:
        at = source.index(old, source.index(after))
        return source[:at] + new + source[at + len(old) :]

    return put


def each(*edits: Edit) -> Edit:
    """Make several changes of one file, in order."""

    def change(source: str) -> str:
        for edit in edits:
            source = edit(source)
        return source

    return change


_HOOK = """
static unsigned int planted_hook(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	return NF_ACCEPT;
}

static const struct nf_hook_ops planted_ops = {
	.hook = planted_hook, .pf = NFPROTO_IPV4, .hooknum = NF_INET_FORWARD, .priority = 0,
};

static int __net_init planted_init(struct net *net)
{
	return nf_register_net_hook(net, &planted_ops);
}

static struct pernet_operations planted_net_ops = { .init = planted_init };

static int __init planted_start(void)
{
	return register_pernet_subsys(&planted_net_ops);
}
late_initcall(planted_start);
"""
_TABLE = "static const char planted[4096] __attribute__((used)) = { 1 };\n\n"
_UNUSED = (
    "noinline __attribute__((used)) static long planted(long a, long b)\n{\n\tlong c = 0;\n\n"
    "\twhile (a--)\n\t\tc += b * a + (c >> 3);\n\treturn c;\n}\n\n"
)

PLANTED = (
    Planted("first", "ten NOPs", TCP_IPV4, before(NOPS, FIRST, RECEIVE), TCP, "tcp_v4_rcv", 20),
    Planted(
        "first",
        "a branch in tcp_ack",
        TCP_INPUT,
        each(
            before("static int planted_off;\n\n", "/* This routine deals with incoming acks"),
            before(
                "\tif (unlikely(READ_ONCE(planted_off)))\n\t\treturn 0;\n",
                "\tsack_state.first_sackt = 0;",
                "static int tcp_ack(struct sock *sk",
            ),
        ),
        TCP,
        "tcp_ack",
        None,  # two a call, and what the compiler spills for them
    ),
    Planted(
        "first",
        "a removed statistic of IP",
        "net/ipv4/ip_input.c",
        instead("\t__IP_UPD_PO_STATS(net, IPSTATS_MIB_IN, skb->len);\n", ""),
        UDP,
        "ip_rcv_core",
        -8,
    ),
    Planted(
        "first",
        "a full memory barrier",
        "net/core/sock.c",
        before("\tsmp_mb();\n", "\trcu_read_lock();", "void sock_def_readable("),
        TCP,
        "sock_def_readable",
        2,
        2,
    ),
    Planted(
        "first",
        "an atomic operation in UDP",
        UDP_C,
        before("\t{ static atomic_t planted; atomic_inc(&planted); }\n", "\tif (len > 0xFFFF)", "int udp_sendmsg("),
        UDP,
        "udp_sendmsg",
        2,
        2,
    ),
    Planted(
        "first",
        "a loop over 16 bytes",
        UDP_C,
        before("\tfor (int i = 0; i < 16; i++)\n\t\tbarrier();\n", DATAGRAM),
        UDP,
        "udp_rcv",
        66,
    ),
    Planted(
        "first",
        "a new hook of netfilter",
        "net/ipv4/ip_forward.c",
        lambda source: source + _HOOK,
        FORWARD,
        "planted_hook",
        2,
    ),
    Planted(
        "second",
        "an atomic operation",
        TCP_IPV4,
        before("\t{ static atomic_t planted; atomic_inc(&planted); }\n", FIRST, RECEIVE),
        TCP,
        "tcp_v4_rcv",
        2,
        2,
    ),
    Planted(
        "second",
        "one hash chain for all connections",
        "net/ipv4/inet_hashtables.c",
        before("\treturn 7;\n", HASH),
        TCP,
        "__inet_lookup_established",
        None,
    ),
    Planted(
        "second",
        "a copy of each datagram",
        UDP_C,
        before("\tkfree_skb(skb_copy(skb, GFP_ATOMIC));\n", DATAGRAM),
        UDP,
        "skb_copy",
        None,
    ),
    Planted(
        "second",
        "a lock around forwarding",
        "net/ipv4/ip_forward.c",
        before(
            "\t{ static DEFINE_SPINLOCK(planted); spin_lock(&planted); spin_unlock(&planted); }\n",
            "\tif (unlikely(skb->sk))",
            "int ip_forward(",
        ),
        FORWARD,
        "_raw_spin_lock",
        None,
        1,
    ),
    Planted(
        "third",
        "a removed statistic of TCP",
        TCP_IPV4,
        instead("\t__TCP_INC_STATS(net, TCP_MIB_INSEGS);\n", "", RECEIVE),
        TCP,
        "tcp_v4_rcv",
        -4,
    ),
    Planted(
        "third",
        "a division",
        TCP_INPUT,
        before(
            '\t{ unsigned long a = 9, d = 0; asm volatile("div %2" : "+a"(a), "+d"(d) : "r"(3ul)); }\n',
            "\ttcp_mstamp_refresh(tp);",
            "void tcp_rcv_established(",
        ),
        TCP,
        "tcp_rcv_established",
        8,
    ),
    Planted("equal", "an unused function in TCP", TCP_IPV4, before(_UNUSED, RECEIVE)),
    Planted(
        "equal",
        "an unused function in the core",
        "net/core/dev.c",
        before(_UNUSED, "int netif_rx(struct sk_buff *skb)"),
    ),
    Planted(
        "equal",
        "an aligned function",
        TCP_INPUT,
        instead(
            "static int tcp_ack(", "static int __aligned(256) tcp_ack(", "\n/* This routine deals with incoming acks"
        ),
    ),
    Planted("equal", "a table of constants", UDP_C, before(_TABLE, "int udp_rcv(struct sk_buff *skb)")),
    Planted(
        "equal",
        "NOPs in ARP, off the path",
        "net/ipv4/arp.c",
        before(NOPS, "\tif (dev->flags & IFF_NOARP", "static int arp_rcv("),
    ),
    Planted(
        "equal",
        "NOPs in ICMP, off the path",
        "net/ipv4/icmp.c",
        before(NOPS, "\tif (!xfrm4_policy_check(NULL, XFRM_POLICY_IN, skb)) {", "int icmp_rcv(struct sk_buff *skb)"),
    ),
)
GROUPS = tuple(dict.fromkeys(one.group for one in PLANTED))


def patch(changes: Sequence[Planted]) -> bytes:
    """Return the changes as one diff."""
    edits: dict[str, list[Edit]] = {}
    for one in changes:
        edits.setdefault(one.path, []).append(one.edit)
    return b"".join(
        diff(path, (LINUX / path).read_text(encoding="utf-8"), each(*of_file)) for path, of_file in edits.items()
    )


class Counts:
    """Counts changes of Linux against the base, which is booted once."""

    def __init__(self, boots: int = 2) -> None:
        self.progress = Progress(sys.stderr)
        self.request = Request(LINUX, (), VAR, boots=boots, limit=3000)
        self.sources = Sources(LINUX, VAR / "trees")
        self.tree = self.sources.base_tree()
        self.builder = Builder(self.sources, VAR / "kernels", fragment(), self.progress)
        folder = VAR / "programs"
        self.machine = Machine(programs.plugin(folder), programs.initramfs(folder), self.request.limit)

    @cached_property
    def base(self) -> Side:
        """What the base costs on each boot."""
        return self._boot(self.tree)

    def compare(self, group: str) -> list[LoadComparison]:
        """Build and boot the changes of a group, and compare each load with the base."""
        changes = patch([one for one in PLANTED if one.group == group])
        return compared(self.base, self._boot(self.sources.patched(self.tree, group, changes)))

    def _boot(self, tree: str) -> Side:
        kernel = self.builder.kernel(tree, self.tree)
        with store.alone(VAR / "boots"):
            (boots,) = boot_all(self.request, self.machine, [kernel], self.progress)
        return [boot.costs for boot in boots]


def rows(group: str, loads: Sequence[LoadComparison]) -> Iterator[tuple[bool, str]]:
    """Return whether each change of a group is as expected, and its row of the table."""
    for one in PLANTED:
        if one.group == group:
            good, found = one.is_as_expected(loads), one.found(loads)
            seen = f"{found.cost.instructions:+.4f} | {found.cost.locked:+.4f}" if found else "= | ="
            where = f"`{one.function}`" if one.function else "none"
            load = one.load.removeprefix("counted.") or "all loads"
            yield good, f"| {one.name} | {load} | {where} | {seen} | {'yes' if good else 'no'} |"


def differing(group: str, loads: Sequence[LoadComparison]) -> Iterator[str]:
    """Return every function that differs, so that what chance explains can be judged."""
    for load in loads:
        for one in load.functions:
            yield f"{group}: {load.name}: {one.name} {one.cost.instructions:+.4f} locked {one.cost.locked:+.4f}"


def main(groups: Sequence[str]) -> int:
    """Entry point."""
    status, counts = 0, Counts()
    print("| change | load | function | instructions | locked | as expected |\n|---|---|---|---|---|---|")
    for group in groups or GROUPS:
        loads = counts.compare(group)
        print(*differing(group, loads), sep="\n", file=sys.stderr, flush=True)
        for good, row in rows(group, loads):
            print(row, flush=True)
            status |= not good
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
