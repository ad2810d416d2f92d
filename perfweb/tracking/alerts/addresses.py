# SPDX-License-Identifier: BSD-2-Clause
"""Where users are notified of the alerts that they watch: a mail address and a webhook, each confirmed by its owner.

Nothing is sent to an address before its owner has opened the link in a first message, except that message, whose
number is limited for each account and address. Every other mail can be ended by one click (RFC 8058).
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.urls import reverse
from django.utils import timezone
from urllib3.util import parse_url

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor
from perfweb.accounts.limits import Limit
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.outbox import public
from perfweb.outbox.models import Letter
from perfweb.outbox.services import post
from perfweb.tracking.alerts import webhooks
from perfweb.tracking.models import AddressKind, AlertAddress

MAIL = "mail:smtp"
LONGEST_ADDRESS = 254
CONFIRM_HOURS = 24
BY_ACCOUNT = Limit("addresses to confirm by an account", 5, 24 * 3600)
TO_ADDRESS = Limit("mails to confirm an address", 3, 24 * 3600)
TO_HOST = Limit("webhooks to confirm at a host", 20, 24 * 3600)
CONFIRM, UNSUBSCRIBE = "confirm", "unsubscribe"
"""What a link does; the names of the addresses of both."""


class WatchError(ValueError):
    """The request cannot be met; the message has the reason for its user."""


@dataclass(frozen=True)
class Message:
    """A notification: a mail's subject and text, and the JSON of a webhook."""

    name: str
    subject: str
    text: str
    data: dict[str, Any]


def of(user: User, kind: AddressKind) -> AlertAddress | None:
    """Return a user's address of a kind, confirmed or not."""
    return AlertAddress.objects.filter(user=user, kind=kind).first()


def request_address(actor: Actor, user: User, kind: AddressKind, text: str) -> None:
    """Set an account's address, and send it a link that confirms it. Raises WatchError and limits.NotNowError."""
    address, limit, limited = _mail_address(text) if kind == AddressKind.MAIL else _webhook(text)
    with audit.action(actor, Action.WATCH, kind.label):
        BY_ACCOUNT.spend(user.username)
        limit.spend(limited)
        _withdraw(user, kind)
        changed = {"address": address, "confirmed": None, "key": secrets.token_hex(16)}
        found, _ = AlertAddress.objects.update_or_create(user=user, kind=kind, defaults=changed)
        link = _link(CONFIRM, user.pk, address)
        text = (
            f"The account {user.username} of {settings.SITE_URL} requests notifications of alerts at this address.\n"
            f"To get them open this link within {CONFIRM_HOURS} hours:\n\n  {link}\n\n"
            "If you have not requested it, do nothing: you will get no further message.\n"
        )
        data = {"occasion": "confirm", "address": link, "text": text}
        _post(found, Message(f"confirm.{timezone.now().timestamp():.6f}", "Confirm your address", text, data))


def _mail_address(text: str) -> tuple[str, Limit, str]:
    address = text.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise WatchError(f"“{address[:80]}” is no mail address: write one like ada@example.org.") from None
    if len(address) > LONGEST_ADDRESS or not address.isascii():
        raise WatchError(f"A mail address has at most {LONGEST_ADDRESS} characters, all of them ASCII.")
    if not settings.MAIL_ADDRESS:
        raise WatchError("This service sends no mail. Use the Atom feeds, or a webhook.")
    return address, TO_ADDRESS, address


def _webhook(text: str) -> tuple[str, Limit, str]:
    try:
        url = public.checked(text)
    except public.UrlError as error:
        raise WatchError(str(error)) from None
    return url, TO_HOST, str(parse_url(url).host)


def waiting(token: str) -> AlertAddress:
    """Return the address that a link confirms. Raises WatchError."""
    return _address(token, CONFIRM, CONFIRM_HOURS * 3600)


def confirm(actor: Actor, token: str) -> AlertAddress:
    """Allow messages to the address of a link. Raises WatchError."""
    with audit.action(actor, Action.CONFIRM_ADDRESS) as entry:
        found = waiting(token)
        entry.subject = str(found)
        found.confirmed = timezone.now()
        found.save()
        return found


def subscribed(token: str) -> AlertAddress:
    """Return the address whose mails a link ends. Raises WatchError."""
    return _address(token, UNSUBSCRIBE)


def unsubscribe(actor: Actor, token: str) -> None:
    """Forget the address of a link, with the mails that wait for it; nothing is left to do if it is forgotten already.

    Raises WatchError for a link that is not from this service.
    """
    if (found := _named(token, UNSUBSCRIBE)) is not None:
        with audit.action(actor, Action.UNSUBSCRIBE, str(found)):
            _forget(found)


def forget_own(actor: Actor, found: AlertAddress) -> None:
    """Forget the address of an account at its user's request."""
    with audit.action(actor, Action.WATCH, str(found), "forgotten"):
        _forget(found)


def _forget(found: AlertAddress) -> None:
    """Delete an address, with the messages that wait for it."""
    _withdraw(found.user, found.kind)
    found.delete()


def send(found: AlertAddress, message: Message) -> None:
    """Queue a message to a confirmed address; a mail gets the link that ends all mails."""
    if found.kind == AddressKind.WEBHOOK:
        _post(found, message)
    elif settings.MAIL_ADDRESS:
        link = _link(UNSUBSCRIBE, found.user_id, found.address)
        end = f"-- \nYou watch this. Watches: {settings.SITE_URL}{reverse('dashboard:mine')}\nNo more mails: {link}\n"
        headers = {"List-Unsubscribe": f"<{link}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
        mail = Message(message.name, message.subject, f"{message.text.rstrip()}\n\n{end}", message.data)
        _post(found, mail, headers)


def newest(found: AlertAddress) -> Letter | None:
    """Return the newest message to a webhook that was sent or has failed, None if there is none."""
    letters = Letter.objects.filter(channel=webhooks.channel(found.user_id)).exclude(sent=None, problem="")
    return letters.order_by("-since").first()


def _post(found: AlertAddress, message: Message, headers: dict[str, str] | None = None) -> None:
    if found.kind == AddressKind.WEBHOOK:
        post(webhooks.channel(found.user_id), message.name, {"url": found.address, "data": message.data})
        return
    content = {
        "occasion": "watch", "to": [found.address], "cc": [], "subject": message.subject, "in_reply_to": "",
        "references": "", "text": message.text, "headers": headers or {},
    }  # fmt: skip
    post(MAIL, f"{_prefix(found.user)}{message.name}", content)


def _withdraw(user: User, kind: str) -> None:
    """Delete the messages to a user's address of a kind that are not sent yet."""
    if kind == AddressKind.WEBHOOK:
        letters = Letter.objects.filter(channel=webhooks.channel(user.pk))
    else:
        letters = Letter.objects.filter(channel=MAIL, key__startswith=_prefix(user))
    letters.filter(due__isnull=False).delete()


def _prefix(user: User) -> str:
    return f"watch.{user.pk}."


def sign(does: str, user: int, address: str) -> str:
    """Return the token of a link."""
    return signing.dumps([user, address], salt=f"perfweb.alerts.{does}")


def _link(does: str, user: int, address: str) -> str:
    return f"{settings.SITE_URL}{reverse(f'tracking:{does}', args=[sign(does, user, address)])}"


def _address(token: str, does: str, seconds: int | None = None) -> AlertAddress:
    found = _named(token, does, seconds)
    if found is None:
        raise WatchError("Nothing is sent to the address of this link.")
    return found


def _named(token: str, does: str, seconds: int | None = None) -> AlertAddress | None:
    """Return the address that a signed token names, None if it is not there any more. Raises WatchError."""
    try:
        user, address = signing.loads(token, salt=f"perfweb.alerts.{does}", max_age=seconds)
    except signing.SignatureExpired:
        raise WatchError(f"This link was valid for {CONFIRM_HOURS} hours. Request another one on your page.") from None
    except (signing.BadSignature, ValueError):
        raise WatchError("This link is not complete, or not from this service.") from None
    return AlertAddress.objects.filter(user=user, address=address, user__is_active=True).first()
