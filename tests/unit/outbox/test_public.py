# SPDX-License-Identifier: BSD-2-Clause
"""URLs of users reach public addresses only, whatever their names resolve to."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_network
from typing import Any

import pytest
import urllib3
from hypothesis import given
from hypothesis import strategies as st
from pytest_django import Settings

from perfweb.outbox.public import NotPublicError, PublicPoolManager, UrlError, checked, is_public
from tests.unit.outbox.programs import Program, running

NOT_PUBLIC = (
    "0.0.0.1", "10.1.2.3", "100.64.0.1", "127.0.0.1", "127.1.2.3", "169.254.169.254", "172.16.0.1", "172.31.255.255",
    "192.0.0.1", "192.0.2.1", "192.168.1.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1",
    "240.0.0.1", "255.255.255.255",
    "::", "::1", "::127.0.0.1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::7f00:1", "64:ff9b:1::1", "100::1",
    "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1", "2002:7f00:1::", "3fff::1", "5f00::1", "fc00::1",
    "fd12:3456::1", "fe80::1", "fe80::1%eth0", "fec0::1", "ff02::1", "ff0e::1", "4000::1",
)  # fmt: skip
PUBLIC = ("1.1.1.1", "8.8.8.8", "100.128.0.1", "172.32.0.1", "2606:4700::1111", "2a00:1450::1", "2001:4860:4860::8888")


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_addresses_that_are_public(address: str) -> None:
    assert is_public(address)


@given(st.integers(0, 2**32 - 1), st.sampled_from(["::ffff:0:0", "::", "64:ff9b::", "64:ff9b:1::", "::ffff:0:0:0"]))
def test_no_ipv6_address_that_contains_an_ipv4_address_is_public(inner: int, prefix: str) -> None:
    assert not is_public(str(IPv6Address(int(IPv6Address(prefix)) | inner)))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**80 - 1))
def test_no_6to4_address_is_public(inner: int, rest: int) -> None:
    assert not is_public(str(IPv6Address((0x2002 << 112) | (inner << 80) | rest)))


@given(st.integers(0, 2**32 - 1))
def test_a_network_that_the_operator_allows(number: int) -> None:
    address = IPv4Address(number)
    assert is_public(str(address), [ip_network("0.0.0.0/0")])
    assert is_public(str(address), [ip_network("10.0.0.0/8")]) == (is_public(str(address)) or number >> 24 == 10)


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://Hooks.Example.org/a?b=c", "https://hooks.example.org/a?b=c"),
        (" http://hooks.example.org:8080/ ", "http://hooks.example.org:8080/"),
        ("https://[2606:4700::1]/x", "https://[2606:4700::1]/x"),
    ],
)
def test_urls(text: str, url: str) -> None:
    assert checked(text) == url


@pytest.mark.parametrize(
    "text",
    [
        "", "hooks.example.org", "ftp://hooks.example.org/", "file:///etc/passwd", "https://", "https:///x", "//x/y",
        "https://user@hooks.example.org/", "https://user:word@hooks.example.org/", "https://x.example/#part",
        "https://x.example:25/", "https://x.example:0/", "https://x.example:99999/", "https://x.example:x/",
        "https://x.example/a b", "https://x.example/\r\nHost: y", "https://höst.example/", "https://[::1/",
        "https://x.example/" + 500 * "a", "https://x.example/" + 300 * '"', "gopher://127.0.0.1:6379/_x",
    ],
)  # fmt: skip
def test_what_is_no_url(text: str) -> None:
    with pytest.raises(UrlError):
        checked(text)


@given(st.text(max_size=60) | st.text(max_size=40).map("https://{}".format))
def test_any_text_is_refused_or_a_url_that_stays_as_it_is(text: str) -> None:
    with suppress(UrlError):
        url = checked(text)
        assert checked(url) == url


@pytest.fixture
def program() -> Iterator[Program]:
    with running() as server:
        yield server


def requested(url: str) -> int:
    pool = PublicPoolManager(retries=False, timeout=urllib3.Timeout(5))
    return pool.request("POST", url, json={}, redirect=False, preload_content=False).status


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "0", "127.1", "[::ffff:127.0.0.1]"])
def test_no_name_reaches_the_service_itself(program: Program, host: str) -> None:
    with pytest.raises(NotPublicError, match="no public address"):
        requested(f"http://{host}:{program.server_port}/")
    assert not program.requests


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_no_scheme_reaches_the_service_itself(program: Program, scheme: str) -> None:
    with pytest.raises(NotPublicError):
        requested(f"{scheme}://127.0.0.1:{program.server_port}/")


def test_another_answer_of_the_name_server_changes_nothing(
    program: Program, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is checked is what is connected to, so a name that changes (DNS rebinding) reaches nothing else."""
    settings.HOOK_NETWORKS = [ip_network("127.0.0.2/32")]
    answers = iter(["127.0.0.2", "127.0.0.1", "127.0.0.1"])
    usual = socket.getaddrinfo

    def resolve(host: str, *arguments: Any, **named: Any) -> Any:
        return usual(next(answers) if host == "rebind.example" else host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with running("127.0.0.2", program.server_port) as other:
        assert requested(f"http://rebind.example:{program.server_port}/") == 204
        assert (len(other.requests), len(program.requests)) == (1, 0)
        assert other.requests[0][0]["Host"] == f"rebind.example:{program.server_port}"
        with pytest.raises(NotPublicError):
            requested(f"http://rebind.example:{program.server_port}/")
    assert not program.requests


def test_of_several_addresses_those_that_are_public_are_tried(
    program: Program, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first address is not public, nothing listens at the second one."""
    settings.HOOK_NETWORKS = [ip_network("127.0.0.2/31")]
    found = [
        (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, program.server_port))
        for address in ("127.0.0.1", "127.0.0.3", "127.0.0.2")
    ]
    usual = socket.getaddrinfo

    def resolve(host: str, *arguments: Any, **named: Any) -> Any:
        return found if host == "several.example" else usual(host, *arguments, **named)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with running("127.0.0.2", program.server_port) as other:
        assert requested(f"http://several.example:{program.server_port}/") == 204
        assert (len(other.requests), len(program.requests)) == (1, 0)


def test_a_name_that_does_not_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(*_: Any, **__: Any) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(urllib3.exceptions.NewConnectionError, match="no known name"):
        requested("http://nosuch.invalid/")
