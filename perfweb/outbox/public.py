# SPDX-License-Identifier: BSD-2-Clause
"""HTTP to addresses of the public Internet only, for URLs that users choose.

A user could otherwise make the service send requests into its operator's network (server-side request forgery,
CWE-918). What a name resolves to is checked where the connection is made, so another answer of the name server after a
check changes nothing.
"""

from __future__ import annotations

import socket
from collections.abc import Collection
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

import urllib3
from django.conf import settings

from perfweb.boundedread import BoundedConnection, BoundedPoolManager, BoundedTlsConnection

LONGEST_URL = 500
FIRST_FREE_PORT = 1024
_USUAL_PORTS = frozenset({80, 443})
_UNICAST = IPv6Network("2000::/3")
_NOT_UNICAST = (
    IPv6Network("2001::/23"),  # RFC 2928; has Teredo (RFC 4380), whose addresses contain an IPv4 address
    IPv6Network("2002::/16"),  # RFC 3056: 6to4 addresses contain one, too
    IPv6Network("2001:db8::/32"),  # RFC 3849: documentation
    IPv6Network("3fff::/20"),  # RFC 9637: documentation
    IPv6Network("5f00::/16"),  # RFC 9602: segment routing
)


class UrlError(ValueError):
    """A URL that is not accepted; the message has the reason for its user."""


class NotPublicError(urllib3.exceptions.HTTPError):
    """A name that has no public address; the message has the name."""


def checked(text: str) -> str:
    """Return a URL as urllib3 will request it. Raises UrlError."""
    text = text.strip()
    if len(text) > LONGEST_URL or not text.isascii() or not text.isprintable() or " " in text:
        raise UrlError(f"A URL has at most {LONGEST_URL} characters, all of them ASCII, and no space.")
    try:
        url = urllib3.util.parse_url(text)
    except urllib3.exceptions.LocationParseError:
        raise UrlError(f"“{text[:80]}” is no URL.") from None
    if url.scheme not in {"http", "https"} or not url.host:
        raise UrlError("Write a URL that begins with https:// or http:// and a host name.")
    if url.auth is not None or url.fragment is not None:
        raise UrlError("The URL cannot have a user name or a part after “#”.")
    if url.port is not None and url.port not in _USUAL_PORTS and url.port < FIRST_FREE_PORT:
        raise UrlError(f"The port must be 80, 443, or at least {FIRST_FREE_PORT}.")
    if len(url.url) > LONGEST_URL:
        raise UrlError(f"With its special characters encoded the URL has more than {LONGEST_URL} characters.")
    return url.url


def is_public(text: str, allowed: Collection[IPv4Network | IPv6Network] = ()) -> bool:
    """Return whether an IP address is a unicast one of the public Internet, or in one of the `allowed` networks.

    Those that RFC 6890 and its registries reserve are not, and no IPv6 address that contains an IPv4 address.
    """
    address = ip_address(text.partition("%")[0])
    if any(address in network for network in allowed):
        return True
    if isinstance(address, IPv4Address):
        return address.is_global and not address.is_multicast and not address.is_reserved
    return _is_unicast(address)


def _is_unicast(address: IPv6Address) -> bool:
    return address.is_global and address in _UNICAST and not any(address in network for network in _NOT_UNICAST)


class _Public(urllib3.connection.HTTPConnection):
    """Connects to the public addresses of a name only."""

    def _new_conn(self) -> socket.socket:
        name, failure = self._dns_host, NotPublicError(f"{self.host} has no public address")
        try:
            found = socket.getaddrinfo(name, self.port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise urllib3.exceptions.NewConnectionError(self, f"{self.host} is no known name") from error
        try:
            for address in dict.fromkeys(str(row[4][0]) for row in found):
                if is_public(address, settings.HOOK_NETWORKS):
                    try:
                        self._dns_host = address
                        return super()._new_conn()
                    except urllib3.exceptions.HTTPError as error:
                        failure = error  # type: ignore[assignment]
        finally:
            self._dns_host = name  # TLS checks the certificate of this name
        raise failure


class _Connection(_Public, BoundedConnection):
    pass


class _TlsConnection(_Public, BoundedTlsConnection):
    pass


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


class _TlsPool(urllib3.HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class PublicPoolManager(BoundedPoolManager):
    """Connections to public addresses. A request raises NotPublicError for a name that has none."""

    pool_classes = {"http": _Pool, "https": _TlsPool}
