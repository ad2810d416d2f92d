# SPDX-License-Identifier: BSD-2-Clause
"""The part of packetdrill's language that the scripts of the stack use, as events.

Beyond packetdrill's, the brackets before the flags of a packet may say: [tos N], [ttl N], [port N] (the peer's),
[dport N], [from ADDRESS], [to ADDRESS], [badsum] (a wrong checksum), [ipopt HEX], [doff N], [higher] and
[unrelated] (an initial sequence number); `hex 1e00` is an option in bytes, and `FO @name` the cookie of TCP Fast Open
that the stack sent with this name first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_WHEN = re.compile(
    r"(?P<any>\*)|(?P<plus>\+)?(?P<at>\d*\.?\d+)(?:~(?P<plus2>\+)?(?P<end>\d*\.?\d+))?"
    r"(?:\.\.\.(?P<until>\d*\.?\d+))?\s"
)
_TCP = re.compile(
    r"(?P<flags>[FSRP.UEWA]+|-) (?P<seq>-?\d+):(?P<end>-?\d+)\((?P<len>\d+)\)(?: ack (?P<ack>-?\d+))?"
    r"(?: win (?P<win>\d+))?(?: urg (?P<urg>\d+))?(?: <(?P<options>[^>]*)>)?$"
)
_ICMP = re.compile(r"icmp (?P<name>[\w ]+?)(?: mtu (?P<mtu>\d+))?(?: \[(?P<seq>\d+):(?P<end>\d+)\((?P<len>\d+)\)\])?$")
_BRACKET = re.compile(r"\[([^\]]+)\] ")
_CALL = re.compile(r"(?P<name>\w+)\((?P<args>.*)\) = (?P<result>-?\d+|0x[\da-f]+)(?: (?P<errno>E\w+))?(?: \(.*\))?$")
_COMMENT = re.compile(r"//.*|/\*.*?\*/", re.DOTALL)


@dataclass(frozen=True)
class When:
    """Seconds: from `start` to `end`, after the event before or after the start of the script; or at any time."""

    start: float = 0.0
    end: float | None = None
    relative: bool = True
    any: bool = False
    until: float | None = None  # a call that blocks returns then


@dataclass(frozen=True)
class Tcp:
    """A TCP segment; sequence numbers are relative. `options` is None where any are accepted."""

    sent: bool
    flags: str
    seq: int
    length: int
    ack: int
    window: int | None
    urgent: int
    options: tuple[str, ...] | None
    marks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Icmp:
    """An ICMP error about a segment."""

    sent: bool
    name: str
    mtu: int
    seq: int
    length: int
    marks: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Call:
    """A system call with its expected result."""

    name: str
    args: tuple[str, ...]
    result: int
    errno: str | None


@dataclass(frozen=True)
class Code:
    """Python statements about TCP_INFO."""

    text: str


Action = Tcp | Icmp | Call | Code


@dataclass(frozen=True)
class Event:
    """An action with its time and line."""

    line: int
    when: When
    action: Action


def split(text: str) -> list[str]:
    """Split at the commas outside of brackets."""
    depth, words = 0, [""]
    for char in text:
        depth += (char in "[{(") - (char in ")}]")
        if char == "," and depth == 0:
            words.append("")
        else:
            words[-1] += char
    return [word.strip() for word in words if word.strip()]


def _when(found: re.Match[str]) -> When:
    if found["any"]:
        return When(any=True)
    end = float(found["end"]) if found["end"] else None
    until = float(found["until"]) if found["until"] else None
    return When(float(found["at"]), end, found["plus"] is not None, until=until)


def _packet(text: str) -> Tcp | Icmp:
    sent, rest = text[0] == ">", text[1:].strip()
    marks: dict[str, str] = {}
    while bracket := _BRACKET.match(rest):
        word, _, value = bracket[1].partition(" ")
        marks[word] = value
        rest = rest[bracket.end() :]
    if found := _ICMP.match(rest):
        return Icmp(sent, found["name"], int(found["mtu"] or 0), int(found["seq"] or 0), int(found["len"] or 0), marks)
    found = _TCP.match(rest)
    if found is None:
        raise ValueError(f"not a packet: {text}")
    if int(found["seq"]) + int(found["len"]) != int(found["end"]):
        raise ValueError(f"wrong length: {text}")
    words = found["options"]
    options = None if words == "..." else tuple(split(words or ""))
    window = int(found["win"]) if found["win"] else None
    flags = found["flags"].replace("-", "")
    return Tcp(
        sent, flags, int(found["seq"]), int(found["len"]), int(found["ack"] or 0), window, int(found["urg"] or 0),
        options, marks,
    )  # fmt: skip


def _action(text: str) -> Action:
    if text[0] in "<>":
        return _packet(text)
    if text.startswith("%{"):
        return Code(text[2:].rpartition("}%")[0])
    found = _CALL.match(text)
    if found is None:
        raise ValueError(f"not an event: {text}")
    return Call(found["name"], tuple(split(found["args"])), int(found["result"], 0), found["errno"])


def parse(lines: tuple[tuple[int, str], ...]) -> tuple[list[str], list[Event]]:
    """The settings of `sysctl` at the start, and the events; ValueError names a wrong line."""
    settings: list[str] = []
    events: list[Event] = []
    rest = [(number, _COMMENT.sub("", line).strip()) for number, line in lines]
    rest = [(number, line) for number, line in rest if line]
    while rest:
        number, line = rest.pop(0)
        closing = "`" if line.count("`") == 1 else "}%" if "%{" in line and "}%" not in line else ""
        while closing and rest:
            more = rest.pop(0)[1]
            line += "\n" + more
            if closing in more:
                break
        if line.startswith("`"):
            settings += [words.split()[-1] for words in line.strip("`").split("\n") if words.strip()]
            continue
        found = _WHEN.match(line)
        if found is None:
            raise ValueError(f"line {number}: no time: {line}")
        try:
            events.append(Event(number, _when(found), _action(line[found.end() :].strip())))
        except ValueError as error:
            raise ValueError(f"line {number}: {error}") from error
    return settings, events
