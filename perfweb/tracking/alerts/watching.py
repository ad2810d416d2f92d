# SPDX-License-Identifier: BSD-2-Clause
"""Users who watch alerts by mail: their confirmed addresses, what they watch, and their mails.

Nothing is sent to an address before its owner has opened the link in a first mail, except that mail, whose number is
limited for each account and address. Every other mail can be ended by one click (RFC 8058).
"""

from __future__ import annotations

from collections.abc import Collection

from django.conf import settings
from django.core import signing
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from perfweb.accounts import audit
from perfweb.accounts.actors import Actor
from perfweb.accounts.limits import Limit
from perfweb.accounts.models import User
from perfweb.accounts.permissions import Action
from perfweb.outbox.models import Letter
from perfweb.outbox.services import post
from perfweb.tracking.models import Alert, AlertAddress, Watch

MAIL = "mail:smtp"
MOST_WATCHES = 50
LONGEST_ADDRESS = 254
CONFIRM_HOURS = 24
BY_ACCOUNT = Limit("addresses to confirm by an account", 5, 24 * 3600)
TO_ADDRESS = Limit("mails to confirm an address", 3, 24 * 3600)
CONFIRM, UNSUBSCRIBE = "confirm", "unsubscribe"
"""What a link does; the names of the addresses of both."""


class WatchError(ValueError):
    """The request cannot be met; the message has the reason for its user."""


def request_address(actor: Actor, user: User, text: str) -> None:
    """Set an account's address, and send it a link that confirms it. Raises WatchError and limits.NotNowError."""
    address = text.strip().lower()
    try:
        validate_email(address)
    except ValidationError:
        raise WatchError(f"“{address[:80]}” is no mail address: write one like ada@example.org.") from None
    if len(address) > LONGEST_ADDRESS or not address.isascii():
        raise WatchError(f"A mail address has at most {LONGEST_ADDRESS} characters, all of them ASCII.")
    if not settings.MAIL_ADDRESS:
        raise WatchError("This service sends no mail. Use the Atom feeds.")
    with audit.action(actor, Action.WATCH, "mail address"):
        BY_ACCOUNT.spend(user.username)
        TO_ADDRESS.spend(address)
        _withdraw(user)
        AlertAddress.objects.update_or_create(user=user, defaults={"address": address, "confirmed": None})
        link = _link(CONFIRM, user.pk, address)
        text = (
            f"The account {user.username} of {settings.SITE_URL} requests mails about alerts at this address.\n"
            f"To get them open this link within {CONFIRM_HOURS} hours:\n\n  {link}\n\n"
            "If you have not requested it, do nothing: you will get no further mail.\n"
        )
        _post(user, f"confirm.{timezone.now().timestamp():.6f}", address, "Confirm your address", text)


def waiting(token: str) -> AlertAddress:
    """Return the address that a link confirms. Raises WatchError."""
    return _address(token, CONFIRM, CONFIRM_HOURS * 3600)


def confirm(actor: Actor, token: str) -> AlertAddress:
    """Allow mails to the address of a link. Raises WatchError."""
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
    """Delete an address, with the mails that wait for it."""
    _withdraw(found.user)
    found.delete()


def watch(actor: Actor, wanted: Watch, *, active: bool) -> None:
    """Begin or end a watch, given as an unsaved one. Raises WatchError."""
    user = wanted.user
    same = Watch.objects.filter(user=user, branch=wanted.branch, test=wanted.test, alert=wanted.alert)
    with audit.action(actor, Action.WATCH, str(wanted), "" if active else "no more"):
        if not active:
            same.delete()
        elif not same.exists():
            User.objects.select_for_update().get(pk=user.pk)  # so that two requests cannot exceed the limit
            if user.watches.count() >= MOST_WATCHES:
                raise WatchError(f"You watch {MOST_WATCHES} things, which is the max: end a watch first.")
            wanted.save()


def notify(
    alert: Alert, occasion: str, subject: str, text: str, *, except_for: Collection[str] = (), by: str = ""
) -> None:
    """Send a mail to each user who watches an alert, its branch or one of its tests; `by` is the user who caused it.

    An update by a user goes only to users that watch the alert itself.
    """
    if not settings.MAIL_ADDRESS:
        return
    tests = alert.movements.filter(confirmed=True).values("test")
    watched = Q(alert=alert) if by else Q(alert=alert) | Q(branch=alert.branch) | Q(test__in=tests)
    users = Watch.objects.filter(watched).exclude(user__username=by).values("user")
    found = AlertAddress.objects.filter(user__in=users, user__is_active=True, confirmed__isnull=False)
    for row in found.exclude(address__in=except_for).select_related("user"):
        link = _link(UNSUBSCRIBE, row.user_id, row.address)
        end = f"-- \nYou watch this. Watches: {settings.SITE_URL}{reverse('dashboard:mine')}\nNo more mails: {link}\n"
        headers = {"List-Unsubscribe": f"<{link}>", "List-Unsubscribe-Post": "List-Unsubscribe=One-Click"}
        _post(row.user, f"alert.{alert.number}.{occasion}", row.address, subject, f"{text.rstrip()}\n\n{end}", headers)


def _post(user: User, name: str, address: str, subject: str, text: str, headers: dict[str, str] | None = None) -> None:
    content = {
        "occasion": "watch", "to": [address], "cc": [], "subject": subject, "in_reply_to": "", "references": "",
        "text": text, "headers": headers or {},
    }  # fmt: skip
    post(MAIL, f"{_prefix(user)}{name}", content)


def _withdraw(user: User) -> None:
    """Delete the mails of a user that are not sent yet."""
    Letter.objects.filter(channel=MAIL, key__startswith=_prefix(user), due__isnull=False).delete()


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
        raise WatchError("No mail is sent to the address of this link.")
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
