# SPDX-License-Identifier: BSD-2-Clause
"""Forwarded headers count only from configured proxies."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from django.core.exceptions import ImproperlyConfigured

from perfweb.proxies import TrustedProxies, networks

PROXY, INNER, CLIENT = "10.0.0.1", "10.0.0.2", "198.51.100.7"


def seen(peer: tuple[str, int] | None, headers: dict[str, str], trusted: str = "10.0.0.0/8") -> dict[str, Any]:
    """The scope that the application gets."""
    found: dict[str, Any] = {}

    async def application(scope: Any, receive: Any, send: Any) -> None:
        found.update(scope)

    lines = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "client": peer, "scheme": "http", "headers": lines}
    asyncio.run(
        TrustedProxies(application, networks(trusted))(cast("Any", scope), cast("Any", None), cast("Any", None))
    )
    return found


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        (CLIENT, CLIENT),
        (f"203.0.113.1, {CLIENT}", CLIENT),  # the client has written the left part
        (f"203.0.113.1,{CLIENT}, {INNER}", CLIENT),
        (f"{CLIENT}:4711", CLIENT),
        ("[2001:db8::1]:443", "2001:db8::1"),
        ("2001:db8::1", "2001:db8::1"),
        ("fe80::1%eth0", "fe80::1"),
        ("::ffff:198.51.100.7", CLIENT),
        (INNER, INNER),
        ("", PROXY),
        ("unknown", PROXY),
        (f"{CLIENT}, <script>", PROXY),
        (f"{CLIENT}, , {INNER}", INNER),
        ("999.1.1.1", PROXY),
        ("1" * 100_000, PROXY),
    ],
)
def test_the_right_most_hop_that_is_no_proxy_is_the_client(forwarded: str, client: str) -> None:
    assert seen((PROXY, 4711), {"X-Forwarded-For": forwarded})["client"] == (client, 4711)


FORGED = {
    "X-Forwarded-For": "203.0.113.1",
    "X-Forwarded-Proto": "https",
    "X-Forwarded-Host": "elsewhere.example",
    "X-Forwarded-Port": "1",
    "X-Real-IP": "203.0.113.1",
    "Forwarded": "for=203.0.113.1;proto=https",
}


@pytest.mark.parametrize("trusted", ["", "192.0.2.1", "10.0.0.0/8"])
def test_from_others_nothing_counts(trusted: str) -> None:
    scope = seen((CLIENT, 4711), FORGED, trusted)
    assert scope["client"] == (CLIENT, 4711)
    assert scope["scheme"] == "http"
    assert scope["headers"] == []


@pytest.mark.parametrize(
    ("proto", "scheme"), [("https", "https"), ("http", "http"), ("https, http", "http"), ("x", "http")]
)
def test_the_scheme_is_from_the_last_proxy(proto: str, scheme: str) -> None:
    scope = seen((PROXY, 4711), {"X-Forwarded-Proto": proto, "Host": "perf.example.org"})
    assert scope["scheme"] == scheme
    assert scope["headers"] == [(b"host", b"perf.example.org")]


def test_an_address_that_another_program_took_from_a_header_is_unknown() -> None:
    """uvicorn's --proxy-headers, on by default, leaves port 0."""
    assert seen(("203.0.113.1", 0), {})["client"] is None


def test_a_proxy_may_come_over_ipv6() -> None:
    assert seen(("::ffff:10.0.0.1", 1), {"X-Forwarded-For": CLIENT})["client"] == (CLIENT, 1)
    assert seen(("fd00::1", 1), {"X-Forwarded-For": CLIENT}, "fd00::/8")["client"] == (CLIENT, 1)


@pytest.mark.parametrize("text", ["proxy.example.org", "10.0.0.1/8", "*"])
def test_a_list_with_something_else_is_refused(text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="PERFWEB_TRUSTED_PROXIES"):
        networks(text)
