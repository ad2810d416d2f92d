# SPDX-License-Identifier: BSD-2-Clause
"""A verifier of byte streams: both ends send a seeded stream at once and check the other's, byte for byte.

    bytestream.py listen PORT SIZE          one connection after another, until killed
    bytestream.py connect ADDRESS PORT SIZE

It uses only plain sockets and the standard library, because it also runs on the stack, as a user who may read nothing
else. Writes and reads have all sizes, from one byte to several segments. `verified` and the two digests are printed
when both directions were right; anything else is an exception.
"""

from __future__ import annotations

import hashlib
import random
import socket
import sys
import threading

CHUNK = 1 << 20


def stream(seed: int, size: int) -> bytes:
    """Return the bytes of a seed."""
    return random.Random(seed).randbytes(size)


def send(sock: socket.socket, data: bytes) -> None:
    """Send everything in pieces of uneven size, and end this direction."""
    sizes = random.Random(len(data))
    view = memoryview(data)
    while view:
        length = sizes.choice((1, 100, 1448, 5000, 65536, 300_000))
        sock.sendall(view[:length])
        view = view[length:]
    sock.shutdown(socket.SHUT_WR)


def receive(sock: socket.socket, expected: bytes) -> None:
    """Read to the end of file; raise an error with the position of the first wrong byte."""
    at = 0
    sizes = random.Random(at)
    while data := sock.recv(sizes.choice((1, 1000, 65536, CHUNK))):
        if data != expected[at : at + len(data)]:
            wrong = next(i for i, byte in enumerate(data) if expected[at + i : at + i + 1] != bytes([byte]))
            raise ValueError(f"byte {at + wrong} of {len(expected)} is wrong")
        at += len(data)
    if at != len(expected):
        raise ValueError(f"the stream ended after {at} of {len(expected)} bytes")


def exchange(sock: socket.socket, size: int, seeds: tuple[int, int]) -> None:
    """Run both directions at the same time; this end sends those of the first seed."""
    ours, theirs = (stream(seed, size) for seed in seeds)
    sender = threading.Thread(target=send, args=(sock, ours))
    sender.start()
    receive(sock, theirs)
    sender.join()
    print("verified", *(hashlib.sha256(data).hexdigest()[:16] for data in sorted((ours, theirs))), flush=True)


def main(role: str, *arguments: str) -> None:
    """Run one end."""
    if role == "listen":
        port, size = map(int, arguments)
        with socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True) as server:
            print("listening", flush=True)
            while True:
                sock, _ = server.accept()
                with sock:
                    exchange(sock, size, (1, 2))
    address, port, size = arguments[0], int(arguments[1]), int(arguments[2])
    with socket.create_connection((address, port)) as sock:
        exchange(sock, size, (2, 1))


if __name__ == "__main__":
    main(*sys.argv[1:])
