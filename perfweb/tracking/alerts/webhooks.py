# SPDX-License-Identifier: BSD-2-Clause
"""Webhooks of users: signed POSTs of JSON about watched alerts, to public addresses only.

The headers are those of Standard Webhooks 1.0.0 (https://github.com/standard-webhooks/standard-webhooks), so that
existing libraries can verify them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import time

import urllib3
from django.utils.crypto import salted_hmac

from perfweb.outbox import services
from perfweb.outbox.hooks import body_of, delivery_of, post_json
from perfweb.outbox.models import Letter
from perfweb.outbox.public import PublicPoolManager
from perfweb.tracking.models import AddressKind, AlertAddress

KIND = "webhook"
_SALT = "perfweb.alerts.webhook"
_PREFIX = "whsec_"
_SECONDS = urllib3.Timeout(connect=3, read=5, total=8)

_pool = PublicPoolManager(retries=False, timeout=_SECONDS, maxsize=1)


def channel(user: int) -> str:
    """Return the channel of a user's webhook: one that does not answer delays no other."""
    return f"{KIND}:{user}"


def secret(found: AlertAddress) -> str:
    """Return the secret that signs what is sent to a webhook. It is in no table: it depends on the service's key."""
    return _PREFIX + base64.b64encode(_key(found)).decode()


def send(letter: Letter) -> str:
    """Send the `data` of a letter to its `url`, if that is still its user's webhook. Raises LaterError and NeverError.

    A webhook that fails is tried again after longer and longer pauses, with one letter each time.
    """
    url, user = letter.content["url"], int(letter.channel.partition(":")[2])
    found = AlertAddress.objects.filter(user=user, kind=AddressKind.WEBHOOK, address=url, user__is_active=True).first()
    if found is None:
        raise services.NeverError(f"{url} is no longer the webhook of this user")
    delivery, now, body = delivery_of(letter), int(time.time()), body_of(letter)
    signed = hmac.digest(_key(found), f"{delivery}.{now}.".encode() + body, hashlib.sha256)
    headers = {
        "webhook-id": delivery,
        "webhook-timestamp": str(now),
        "webhook-signature": f"v1,{base64.b64encode(signed).decode()}",
    }
    try:
        post_json(_pool, url, body, headers)
    except services.LaterError as error:
        raise services.LaterError(str(error), services.pause(letter.attempts), everything=True) from None
    return delivery


def _key(found: AlertAddress) -> bytes:
    return salted_hmac(_SALT, f"{found.user_id} {found.key}", algorithm="sha256").digest()
