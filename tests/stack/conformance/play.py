# SPDX-License-Identifier: BSD-2-Clause
"""Plays a script: makes its calls, sends its packets, and compares what the stack sends with what it expects.

Stricter than packetdrill in three ways: a packet that no event expects is an error; the bytes of each segment are those
that were written at its sequence number, and what is read must be what was sent; checksums must be right. As in
packetdrill, an event may be late by TOLERANCE.
"""

from __future__ import annotations

import ctypes
import errno
import socket
import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path

from tests.stack.conformance import calls, wire
from tests.stack.conformance.cases import Case
from tests.stack.conformance.grammar import Call, Code, Event, Icmp, Tcp, When, parse
from tests.stack.conformance.machine import Machine

TOLERANCE = 0.004
LOOSE = ("push", "window", "order")
"""What a comparison may ignore: the PSH flag, the window, the order of options and their padding."""
LOCAL = {"ipv4": "192.168.0.1", "mapped": "192.168.0.1", "ipv6": "fd3d:fa7b:d17d::1"}
PEER = {"ipv4": "192.0.2.1", "mapped": "192.0.2.1", "ipv6": "2001:db8::1"}
PORT, PEER_PORT = 8080, 40000
# IPv6's header is 20 bytes longer, so that both have the same maximum segment size, as in packetdrill.
MTU = {"ipv4": 1500, "mapped": 1500, "ipv6": 1520}
# The peer's sequence numbers pass 2^32 after 8 KB in IPv6.
PEER_ISN = {"ipv4": 0, "mapped": 77, "ipv6": 2**32 - 8192}
LONGEST = 4 * 3600.0
_TIMESTAMP_NAMES = ("val", "ecr")


class MismatchError(Exception):
    """The stack did something else."""


@dataclass
class Connection:
    """One connection of a script: ports, initial sequence numbers, and timestamps by those of the script."""

    peer_port: int
    local_port: int
    peer_isn: int
    isn: int | None = None
    stamps: dict[int, int] = field(default_factory=dict)
    last: wire.Segment | None = None


def payload(start: int, length: int) -> bytes:
    """The bytes at relative sequence numbers."""
    return bytes((start + i) * 7 % 251 for i in range(length))


class Player:
    """A script that is being played."""

    def __init__(self, machine: Machine, family: str, loose: Collection[str]) -> None:
        self.machine, self.family, self.loose = machine, family, loose
        self.domain = socket.AF_INET if family == "ipv4" else socket.AF_INET6
        self.connections: list[Connection] = []
        self.fresh = True  # the next packet belongs to another connection
        self.descriptors: dict[int, int] = {}
        self.written: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self.cookies: dict[str, str] = {}  # of TCP Fast Open, by the name in the script
        self.urgent = False  # read positions are not sequence numbers
        self.pending: tuple[wire.Segment | bytes, float] | None = None
        self.blocked: tuple[threading.Thread, list[float], float] | None = None
        self.begin = self.time = machine.now()

    def play(self, events: list[Event]) -> None:
        """Raise MismatchError with the line of the first event that does not happen as described."""
        for event in events:
            try:
                self._event(event)
            except (MismatchError, ValueError) as error:
                raise MismatchError(f"line {event.line}: {error}") from error
        self._join()
        self._expect_silence()

    def _event(self, event: Event) -> None:
        action = event.action
        start = event.when.start + (self.time if event.when.relative else self.begin)
        if isinstance(action, Tcp | Icmp) and action.sent:
            self._expect(action, event.when, start)
            return
        self.machine.sleep(start - self.machine.now())
        self.time = start
        if not isinstance(action, Call):
            self._expect_silence()
        match action:
            case Tcp():
                self.machine.inject(wire.encode(self._segment(action)))
            case Icmp():
                self._inject_error(action)
            case Call():
                self._call(action, event.when)
            case Code():
                self._code(action)

    # Packets.

    def _receive(self, wait: float) -> tuple[wire.Segment | bytes, float] | None:
        """The next segment or ICMP error; not the messages by which IPv6 configures itself."""
        if self.pending is not None:
            found, self.pending = self.pending, None
            return found
        while (received := self.machine.receive(wait)) is not None:
            data, at = received
            segment = wire.decode(data)
            if segment is not None:
                return segment, at
            if data[0] >> 4 == 4 or (data[6] == wire.ICMP6 and data[40] < 128):
                return data, at
        return None

    def _expect_silence(self) -> None:
        received = self._receive(0.0)
        if received is not None:
            raise MismatchError(f"unexpected at {received[1] - self.begin:.3f}: {self._text(received[0])}")

    def _expect(self, action: Tcp | Icmp, when: When, start: float) -> None:
        received = self._receive(LONGEST if when.any else max(0.0, (when.end or 0) + 60 + start - self.machine.now()))
        if received is None:
            raise MismatchError("nothing was sent")
        packet, at = received
        early, late = start - TOLERANCE, start + TOLERANCE
        if when.end is not None:
            late = when.end + (self.time if when.relative else self.begin) + TOLERANCE
        if not when.any and not early <= at <= late:
            raise MismatchError(f"at {at - self.begin:.6f}, not {start - self.begin:.6f}: {self._text(packet)}")
        self.time = at if when.any or when.end is not None else start
        if isinstance(action, Icmp) or not isinstance(packet, wire.Segment):
            raise MismatchError(f"sent: {self._text(packet)}")
        self._merge(packet, action.length)
        self._compare(action, packet)

    def _merge(self, packet: wire.Segment, length: int) -> None:
        """Append the segments that follow it, up to the length that a script names for all of them."""
        while 0 < len(packet.payload) < length:
            received = self._receive(0.0)
            if received is None:
                return
            more = received[0]
            if not isinstance(more, wire.Segment) or more.seq != (packet.seq + len(packet.payload)) % 2**32:
                self.pending = received
                return
            packet.payload += more.payload
            packet.flags |= more.flags

    def _connection(self, action: Tcp) -> Connection:
        port = action.marks.get("port")
        if port is not None:
            for connection in self.connections:
                if connection.peer_port == int(port):
                    return connection
        if self.fresh or port is not None or not self.connections:
            number = int(port) if port is not None else PEER_PORT + len(self.connections)
            local = int(action.marks.get("dport", PORT))
            self.connections.append(Connection(number, local, PEER_ISN[self.family]))
            self.fresh = False
        return self.connections[-1]

    def _segment(self, action: Tcp) -> wire.Segment:
        connection, marks = self._connection(action), action.marks
        self.urgent |= "U" in action.flags
        isn = connection.isn or 0
        words = []
        for word in action.options or ():
            name, *values = word.split()
            if name == "sack":
                edges = [[int(edge) + isn for edge in value.split(":")] for value in values]
                word = "sack " + " ".join(f"{a}:{b}" for a, b in edges)  # noqa: PLW2901
            elif name == "TS":
                echo = int(values[3])
                word = f"TS val {values[1]} ecr {connection.stamps.get(echo, echo)}"  # noqa: PLW2901
            elif name in ("FO", "FOEXP") and values:
                word = f"{name} {self.cookies.get(values[0], values[0])}"  # noqa: PLW2901
            words.append(word)
        first = action.seq + ("S" in action.flags)
        port = PORT if "dport" not in marks else int(marks["dport"])
        return wire.Segment(
            source=marks.get("from", PEER[self.family]),
            target=marks.get("to", LOCAL[self.family]),
            sport=connection.peer_port,
            dport=connection.local_port if "dport" not in marks else port,
            seq=action.seq + connection.peer_isn,
            ack=action.ack + isn if "." in action.flags else 0,
            flags=sum(wire.BITS[flag] for flag in action.flags),
            window=action.window if action.window is not None else 0,
            urgent=action.urgent,
            options=b"".join(wire.encode_option(word) for word in words),
            payload=payload(first, action.length),
            tos=int(marks.get("tos", "0"), 0) | sum(wire.ECN.get(mark, 0) for mark in marks),
            ttl=int(marks.get("ttl", "64")),
            doff=int(marks["doff"]) if "doff" in marks else None,
            bad_sum="badsum" in marks,
            ip_options=bytes.fromhex(marks.get("ipopt", "")),
        )

    def _inject_error(self, action: Icmp) -> None:
        if not self.connections or self.connections[-1].isn is None:
            raise MismatchError("an ICMP error before any packet")
        connection = self.connections[-1]
        about = wire.encode(
            wire.Segment(
                LOCAL[self.family], PEER[self.family], connection.local_port, connection.peer_port,
                action.seq + (connection.isn or 0), connection.peer_isn, wire.BITS["."], 0,
                payload=payload(action.seq, action.length),
            )
        )  # fmt: skip
        mtu = action.mtu + (MTU[self.family] - MTU["ipv4"] if action.mtu else 0)
        self.machine.inject(wire.error(action.name, mtu, about, LOCAL[self.family]))

    def _compare(self, action: Tcp, packet: wire.Segment) -> None:
        connection = self._connection(action)
        self._compare_isn(action, packet, connection)
        if connection.isn is None or ("S" in action.flags and action.seq == 0):
            connection.isn = (packet.seq - action.seq) % 2**32
            if connection.last is None and action.flags.startswith("S") and "." not in action.flags:
                connection.local_port, connection.peer_port = packet.sport, packet.dport
        self._compare_header(action.marks, packet)
        if (packet.sport, packet.dport) != (connection.local_port, connection.peer_port):
            raise MismatchError(f"ports {packet.sport} and {packet.dport}: {self._text(packet)}")
        if self._fields(action, packet) != self._found(connection, packet):
            raise MismatchError(f"sent: {self._text(packet)}")
        if action.options is not None:
            self._compare_options(action.options, packet, connection)
        first = action.seq + ("S" in action.flags)
        if packet.payload != payload(first, len(packet.payload)):
            raise MismatchError(f"other data than was written: {self._text(packet)}")
        connection.last = packet

    def _compare_header(self, marks: dict[str, str], packet: wire.Segment) -> None:
        """The fields of the IP header."""
        for name in ("from", "to", "ttl", "tos"):
            if name in marks:
                given = getattr(packet, {"from": "source", "to": "target"}.get(name, name))
                value = int(marks[name], 0) if name in ("ttl", "tos") else marks[name]
                if given != value:
                    raise MismatchError(f"{name} {given}: {self._text(packet)}")
        for mark in marks:
            if mark in wire.ECN and packet.tos & 3 != wire.ECN[mark]:
                raise MismatchError(f"ECN {packet.tos & 3}: {self._text(packet)}")

    def _compare_isn(self, action: Tcp, packet: wire.Segment, connection: Connection) -> None:
        """[higher]: behind all sequence numbers of the last use; [unrelated]: far from the other connections'."""
        if "higher" in action.marks and not 1 < (packet.seq - (connection.isn or 0)) % 2**32 < 2**31:
            raise MismatchError(f"initial sequence number {packet.seq} after {connection.isn}")
        for other in self.connections if "unrelated" in action.marks else ():
            # Of all pairs of secret hashes, one in 2^15 is as near as this. The secrets are the same in every run.
            if other is not connection and abs(packet.seq - (other.isn or 0)) < 2**16:
                raise MismatchError(f"initial sequence numbers {packet.seq} and {other.isn}")

    def _fields(self, action: Tcp, packet: wire.Segment) -> tuple[object, ...]:
        flags = set(action.flags)
        window = action.window if action.window is not None and "window" not in self.loose else packet.window
        if "push" in self.loose:
            flags.discard("P")
        return flags, action.seq, action.length, action.ack, window, action.urgent

    def _found(self, connection: Connection, packet: wire.Segment) -> tuple[object, ...]:
        flags = {name for name, bit in wire.BITS.items() if packet.flags & bit}
        if "push" in self.loose:
            flags.discard("P")
        ack = (packet.ack - connection.peer_isn) % 2**32 if "." in flags else 0
        seq = (packet.seq - (connection.isn or 0)) % 2**32
        return flags, seq, len(packet.payload), ack, packet.window, packet.urgent

    def _compare_options(self, options: tuple[str, ...], packet: wire.Segment, connection: Connection) -> None:
        def relative(word: str) -> str:
            name, *values = word.split()
            if name != "sack":
                return word
            edges = [[(int(edge) - connection.peer_isn) % 2**32 for edge in value.split(":")] for value in values]
            return "sack " + " ".join(f"{a}:{b}" for a, b in edges)

        found = [relative(word) for word in wire.decode_options(packet.options)]
        expected = list(options)
        for index, word in enumerate(expected):
            if word.startswith("TS") and index < len(found) and found[index].startswith("TS"):
                given, live = word.split(), found[index].split()
                connection.stamps[int(given[2])] = int(live[2])
                expected[index] = f"TS val {live[2]} ecr {given[4] if given[4] != 'any' else live[4]}"
            option, *cookie = word.split()
            if cookie and cookie[0][0] == "@" and index < len(found) and found[index].startswith(f"{option} "):
                # The stack's cookies are secret: the first one with this name.
                expected[index] = f"{option} {self.cookies.setdefault(cookie[0], found[index].split()[1])}"
        if "order" in self.loose:
            found, expected = (sorted(set(words) - {"nop", "eol"}) for words in (found, expected))
        if found != expected:
            raise MismatchError(f"options <{','.join(found)}>: {self._text(packet)}")

    def _text(self, packet: wire.Segment | bytes) -> str:
        if isinstance(packet, bytes):
            return f"datagram {packet[:48].hex()}"
        connection = self.connections[-1] if self.connections else Connection(0, 0, 0, 0)
        flags, seq, length, ack, window, urgent = self._found(connection, packet)
        assert isinstance(flags, set)
        names = "".join(name for name in "FSRP.UEWA" if name in flags)
        options = ",".join(wire.decode_options(packet.options))
        return f"{names} {seq}({length}) ack {ack} win {window} urg {urgent} <{options}>"

    # Calls.

    def _fd(self, word: str) -> int:
        return self.descriptors.get(int(word), int(word))

    def _join(self) -> None:
        """Wait for a blocked call; it must return at its time."""
        if self.blocked is None:
            return
        thread, ended, until = self.blocked
        self.blocked = None
        while thread.is_alive() and self.machine.now() < until + TOLERANCE:
            self.machine.sleep(0.001)
            thread.join(0.001)
        thread.join(5)
        if not ended or abs(ended[0] - until) > TOLERANCE:
            raise MismatchError(f"the call returned at {[t - self.begin for t in ended]}, not {until - self.begin:.3f}")

    def _call(self, call: Call, when: When) -> None:
        self._join()
        method: Callable[[Call], Callable[[], None]] = getattr(self, f"_do_{call.name}", None) or self._no_call(call)
        run = method(call)
        if when.until is None:
            run()
            return
        until = when.until + self.time
        ended: list[float] = []
        problem: list[Exception] = []

        started = threading.Event()

        def block() -> None:
            # After a call on a socket, time stands until the thread's next call, so that one begins at its time.
            size = ctypes.c_int(4)
            fd, kind = self._fd(call.args[0]), ctypes.create_string_buffer(4)
            self.machine.call("getsockopt", fd, socket.SOL_SOCKET, socket.SO_TYPE, kind, ctypes.byref(size))
            started.set()
            try:
                run()
            except MismatchError as error:
                problem.append(error)
            ended.append(self.machine.now())

        thread = threading.Thread(target=block, daemon=True)
        self.blocked = (thread, ended, until)
        thread.start()
        started.wait()

    def _no_call(self, call: Call) -> Callable[[Call], Callable[[], None]]:
        raise MismatchError(f"{call.name}() is unknown")

    def _make(self, call: Call, *args: object, then: Callable[[int], None] | None = None) -> Callable[[], None]:
        def run() -> None:
            result, number = self.machine.call(call.name, *args)
            name = errno.errorcode.get(number, str(number)) if result < 0 else None
            if (result < 0, name) != (call.result < 0, call.errno):
                raise MismatchError(f"{call.name}() returned {result} {name or ''}")
            if then is not None:
                then(result)
            elif result != call.result:
                raise MismatchError(f"{call.name}() returned {result}")

        return run

    def _opens(self, call: Call) -> Callable[[int], None]:
        def opened(result: int) -> None:
            if result >= 0:
                self.descriptors[call.result] = result
                self.written[call.result] = self.read[call.result] = 1

        return opened

    def _do_socket(self, call: Call) -> Callable[[], None]:
        return self._make(call, self.domain, calls.constant(call.args[1]), 0, then=self._opens(call))

    def _address(self, word: str, host: str) -> ctypes.Array[ctypes.c_char]:
        port = PORT if word == "..." else int(word)
        return calls.address(host, port, self.domain)

    def _do_bind(self, call: Call) -> Callable[[], None]:
        where = self._address(call.args[1], calls.any_address(self.domain))
        return self._make(call, self._fd(call.args[0]), where, len(where))

    def _do_listen(self, call: Call) -> Callable[[], None]:
        self.fresh = True
        return self._make(call, self._fd(call.args[0]), int(call.args[1]))

    def _do_connect(self, call: Call) -> Callable[[], None]:
        again = call.args[1] == "again"
        self.fresh |= not again
        if call.args[1] in ("...", "again"):
            where = self._address("...", PEER[self.family])
        else:
            where = calls.address(call.args[1], PORT, self.domain)
        return self._make(call, self._fd(call.args[0]), where, len(where))

    def _do_accept(self, call: Call) -> Callable[[], None]:
        return self._make(call, self._fd(call.args[0]), None, None, then=self._opens(call))

    def _do_close(self, call: Call) -> Callable[[], None]:
        return self._make(call, self._fd(call.args[0]))

    def _do_shutdown(self, call: Call) -> Callable[[], None]:
        return self._make(call, self._fd(call.args[0]), calls.constant(call.args[1]))

    def _do_fcntl(self, call: Call) -> Callable[[], None]:
        value = calls.constant(call.args[2]) if len(call.args) > 2 else 0
        return self._make(call, self._fd(call.args[0]), calls.constant(call.args[1]), value)

    def _sends(self, call: Call, *more: object) -> Callable[[], None]:
        number = int(call.args[0])
        data = payload(self.written.get(number, 1), int(call.args[2]))

        def sent(result: int) -> None:
            if result != call.result:
                raise MismatchError(f"{call.name}() returned {result}")
            self.written[number] = self.written.get(number, 1) + max(0, result)

        return self._make(call, self._fd(call.args[0]), data, len(data), *more, then=sent)

    def _do_write(self, call: Call) -> Callable[[], None]:
        return self._sends(call)

    def _do_send(self, call: Call) -> Callable[[], None]:
        return self._sends(call, calls.constant(call.args[3]))

    def _do_sendto(self, call: Call) -> Callable[[], None]:
        again = call.args[4] == "again"
        self.fresh |= not again
        where = self._address("...", PEER[self.family])
        return self._sends(call, calls.constant(call.args[3]), where, len(where))

    def _reads(self, call: Call, flags: int, *more: object) -> Callable[[], None]:
        number, buffer = int(call.args[0]), ctypes.create_string_buffer(int(call.args[2]))

        def received(result: int) -> None:
            if result != call.result:
                raise MismatchError(f"{call.name}() returned {result}")
            start = self.read.get(number, 1)
            if result > 0 and not self.urgent and buffer.raw[:result] != payload(start, result):
                raise MismatchError(f"{call.name}() returned other data than was sent")
            if result > 0 and not flags & socket.MSG_PEEK:
                self.read[number] = start + result

        return self._make(call, self._fd(call.args[0]), buffer, len(buffer), *more, then=received)

    def _do_read(self, call: Call) -> Callable[[], None]:
        return self._reads(call, 0)

    def _do_recv(self, call: Call) -> Callable[[], None]:
        flags = calls.constant(call.args[3])
        return self._reads(call, flags, flags)

    def _do_setsockopt(self, call: Call) -> Callable[[], None]:
        level, name, value = calls.constant(call.args[1]), calls.constant(call.args[2]), calls.memory(call.args[3])
        return self._make(call, self._fd(call.args[0]), level, name, value, len(value))

    def _compared(self, call: Call, word: str, *before: object, size: int | None) -> Callable[[], None]:
        expected = calls.memory(word)
        buffer = ctypes.create_string_buffer(len(expected))
        length = ctypes.c_int(len(expected))

        def compare(result: int) -> None:
            if result >= 0 and size not in (None, length.value):
                raise MismatchError(f"{call.name}() gave {length.value} bytes")
            if result >= 0 and buffer.raw != expected.raw:
                raise MismatchError(f"{call.name}() gave {int.from_bytes(buffer.raw[:4], 'little', signed=True)}")

        return self._make(call, *before, buffer, *([ctypes.byref(length)] if size is not None else []), then=compare)

    def _do_getsockopt(self, call: Call) -> Callable[[], None]:
        level, name = calls.constant(call.args[1]), calls.constant(call.args[2])
        return self._compared(
            call, call.args[3], self._fd(call.args[0]), level, name, size=int(call.args[4].strip("[]"))
        )

    def _do_ioctl(self, call: Call) -> Callable[[], None]:
        return self._compared(call, call.args[2], self._fd(call.args[0]), calls.constant(call.args[1]), size=None)

    def _do_poll(self, call: Call) -> Callable[[], None]:
        """poll(FD, EVENTS, REVENTS, MS): one descriptor."""
        events, expected = calls.constant(call.args[1]), calls.constant(call.args[2])
        entry = (ctypes.c_short * 4)()
        ctypes.memmove(entry, self._fd(call.args[0]).to_bytes(4, "little"), 4)
        entry[2] = events

        def compare(result: int) -> None:
            if result != call.result or entry[3] != expected:
                raise MismatchError(f"poll() returned {result} with {entry[3]:#x}")

        return self._make(call, ctypes.addressof(entry), 1, int(call.args[3]), then=compare)

    def _code(self, code: Code) -> None:
        data = ctypes.create_string_buffer(calls.INFO_SIZE)
        length = ctypes.c_int(len(data))
        if self.descriptors:
            fd = self.descriptors[max(self.descriptors)]
            number = calls.constant("TCP_INFO")
            self.machine.call("getsockopt", fd, socket.IPPROTO_TCP, number, data, ctypes.addressof(length))
        try:
            exec(code.text.strip(), calls.info(data.raw))  # noqa: S102 - a script of this tree
        except AssertionError as error:
            raise MismatchError(f"{code.text.strip()}: {error}") from error


def play(library: Path, case: Case, family: str, tunables: Collection[str] = (), loose: Collection[str] = ()) -> None:
    """Play a case in this process, which must have no stack yet; raise MismatchError where it differs."""
    settings, events = parse(case.lines)
    addresses = [f"inet={LOCAL['ipv4']}/16", f"inet6={LOCAL['ipv6']}/48", f"mtu={MTU[family]}"]
    machine = Machine(library, " ".join([*addresses, *tunables, *settings]))
    Player(machine, family, loose).play(events)
