# SPDX-License-Identifier: BSD-2-Clause
"""Urgent data of TCP, both ways at once: urgent.py listen PORT, urgent.py connect ADDRESS PORT."""

from __future__ import annotations

import errno
import fcntl
import select
import socket
import sys
import time
from array import array

SIOCATMARK = 0x8905
MUCH = b"m" * 40_000  # larger than the receive buffer, but within the range of the pointer


def exact(sock: socket.socket, size: int) -> bytes:
    """Read that many bytes of the stream, in any pieces."""
    got = b""
    while len(got) < size:
        piece = sock.recv(size - len(got))
        assert piece, f"{len(got)} of {size} bytes"
        got += piece
    return got


def at_mark(sock: socket.socket) -> bool:
    answer = array("i", [0])
    fcntl.ioctl(sock.fileno(), SIOCATMARK, answer)
    return answer[0] == 1


def urgent(sock: socket.socket) -> bytes:
    """Read the urgent byte; a socket with a timeout would wait for other data first."""
    poll = select.poll()
    poll.register(sock, select.POLLPRI)
    assert poll.poll(20_000), "no POLLPRI"
    sock.setblocking(False)
    byte = sock.recv(1, socket.MSG_OOB)
    sock.settimeout(180)
    return byte


def await_news(sock: socket.socket) -> None:
    """Wait until an urgent byte is announced, although the window is too small for it to arrive."""
    until = time.monotonic() + 180
    sock.setblocking(False)
    while True:
        try:
            raise AssertionError(f"nobody made room for {sock.recv(1, socket.MSG_OOB)!r}")
        except BlockingIOError:
            break
        except OSError as error:
            if error.errno != errno.EINVAL:
                raise
        assert time.monotonic() < until, "not announced"
        time.sleep(0.01)
    sock.settimeout(180)


def converse(sock: socket.socket) -> None:
    """Run either side."""
    sock.sendall(b"ab!", socket.MSG_OOB)
    sock.sendall(b"cd")
    assert urgent(sock) == b"!"
    assert exact(sock, 2) == b"ab"
    assert at_mark(sock)
    assert exact(sock, 2) == b"cd"
    assert not at_mark(sock)
    sock.sendall(b"next")  # a second urgent byte replaces a pending one
    assert exact(sock, 4) == b"next"
    sock.sendall(MUCH)
    sock.sendall(b"?", socket.MSG_OOB)
    await_news(sock)
    assert exact(sock, len(MUCH)) == MUCH
    byte = urgent(sock)
    assert byte == b"?", f"{byte!r} was urgent"
    sock.sendall(b"bye")
    assert exact(sock, 3) == b"bye"


def main(role: str, *where: str) -> None:
    server = socket.socket()
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    server.settimeout(180)
    sock = server
    if role == "listen":
        server.bind(("", int(where[0])))
        server.listen()
        print("listening", flush=True)
        sock, _ = server.accept()
    else:
        server.connect((where[0], int(where[1])))
    sock.settimeout(180)
    converse(sock)
    print("all came", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
