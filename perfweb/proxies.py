# SPDX-License-Identifier: BSD-2-Clause
"""Reads X-Forwarded-For and X-Forwarded-Proto from configured reverse proxies only; by default from none.

The client's address is the right-most hop that is no trusted proxy, because that client wrote what is further left
(https://developer.mozilla.org/docs/Web/HTTP/Reference/Headers/X-Forwarded-For#selecting_an_ip_address). All headers of
this kind are removed, so that later code cannot use them.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence

from asgiref.typing import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, HTTPScope, Scope
from django.core.exceptions import ImproperlyConfigured

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
_OTHERS = {b"forwarded", b"x-real-ip", b"client-ip", b"true-client-ip", b"x-client-ip", b"x-cluster-client-ip"}


def networks(text: str, variable: str = "PERFWEB_TRUSTED_PROXIES") -> list[Network]:
    """Return the networks of a variable's comma-separated addresses and networks. Raises ImproperlyConfigured."""
    try:
        return [ipaddress.ip_network(word.strip()) for word in text.split(",") if word.strip()]
    except ValueError as error:
        raise ImproperlyConfigured(f"{variable}: {error}; list addresses, or networks like 10.0.0.0/8") from None


def parse(text: str) -> Address | None:
    """Return the address in one hop of X-Forwarded-For, with or without a port; None if it is malformed."""
    text = text.strip()
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


class TrustedProxies:
    """Sets client and scheme of a request from a trusted proxy's headers, and removes these headers."""

    def __init__(self, application: ASGI3Application, trusted: Sequence[Network]) -> None:
        self.application, self.trusted = application, trusted

    async def __call__(self, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        await self.application(self._seen(scope) if scope["type"] == "http" else scope, receive, send)

    def _seen(self, scope: HTTPScope) -> HTTPScope:
        headers = list(scope["headers"])
        seen: HTTPScope = {**scope, "headers": [(name, value) for name, value in headers if not _forwards(name)]}
        client = scope["client"]
        peer = parse(client[0]) if client else None
        if client and client[1] == 0:
            seen["client"] = None  # uvicorn's --proxy-headers accepted a header and replaced the peer by its text
        elif client and peer and self._trusts(peer):
            seen["client"] = (str(self._client(peer, _values(headers, b"x-forwarded-for"))), client[1])
            if (scheme := _values(headers, b"x-forwarded-proto")[-1:]) in (["http"], ["https"]):
                seen["scheme"] = scheme[0]
        return seen

    def _trusts(self, address: Address) -> bool:
        return any(address in network for network in self.trusted)

    def _client(self, peer: Address, hops: Iterable[str]) -> Address:
        """Return the right-most untrusted hop; after a malformed one, the last known proxy."""
        for hop in reversed(list(hops)):
            address = parse(hop)
            if address is None:
                return peer
            peer = address
            if not self._trusts(peer):
                return peer
        return peer


def _forwards(name: bytes) -> bool:
    return name.startswith(b"x-forwarded-") or name in _OTHERS


def _values(headers: Iterable[tuple[bytes, bytes]], name: bytes) -> list[str]:
    """The elements of all headers of a name, in order."""
    text = ",".join(value.decode("latin-1") for known, value in headers if known == name)
    return [word.strip() for word in text.split(",")] if text else []
