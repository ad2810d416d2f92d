# SPDX-License-Identifier: BSD-2-Clause
"""Receives webhooks: verified, stored, and handled by another process, so that the response is immediate."""

import hashlib
import logging
from dataclasses import asdict, replace

from celery import current_app
from django.db import IntegrityError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from kombu.exceptions import OperationalError as BrokerError

from perfweb.accounts import limits
from perfweb.accounts.actors import address_of
from perfweb.accounts.guards import acts
from perfweb.accounts.permissions import Action
from perfweb.forges import secrets
from perfweb.forges.models import Delivery, Project
from perfweb.forges.table import FORGES, Event, ShapeError
from perfweb.inputlimits import COMMENT_CHARACTERS, WEBHOOK_BYTES
from perfweb.jsontext import JsonError, read_request
from perfweb.outbox.secretfiles import SecretError

log = logging.getLogger(__name__)

LONGEST_TITLE = 200


@csrf_exempt
@require_POST
@acts(Action.DELIVER)
def webhook(request: HttpRequest, name: str) -> HttpResponse:
    """Store a delivery of a project's forge. The body is not parsed before its signature is verified."""
    project = Project.named(name)
    if project is None:
        return _respond(404, "There is no such project.")
    return _refusal(project, request) or _read(project, request)


def _refusal(project: Project, request: HttpRequest) -> HttpResponse | None:
    """The response to a request without a valid signature."""
    if len(request.body) > WEBHOOK_BYTES:
        return _respond(413, f"A delivery has at most {WEBHOOK_BYTES} bytes.")
    try:
        secret = secrets.webhook_secret(project)
    except SecretError as error:
        log.warning("webhooks of %s are refused: %s", project, error)
        return _respond(503, "This project has no secret yet.")
    if not FORGES[project.forge].genuine(request.headers, request.body, secret):
        limits.wrong_secret(address_of(request))
        return _respond(403, "The signature is not that of this project's secret.")
    return None


def _read(project: Project, request: HttpRequest) -> HttpResponse:
    """Store the event of a verified delivery, if it is of a known kind."""
    forge = FORGES[project.forge]
    try:
        payload = read_request(request.body)
        event = forge.read(request.headers, payload) if isinstance(payload, dict) else None
    except (JsonError, ShapeError) as error:
        problem = str(error) if isinstance(error, ShapeError) else f"it {error}"
        return _respond(400, f"This delivery cannot be read: {problem}.")
    if event is None or event.path.lower() != project.path.lower():
        return _respond(200, "Nothing to do.")
    digest = hashlib.sha256(request.body).hexdigest()
    return _keep(project, request.headers.get(forge.delivery, "") or digest, digest, event)


def _keep(project: Project, identifier: str, digest: str, event: Event) -> HttpResponse:
    short = replace(event, body=event.body[:COMMENT_CHARACTERS], title=event.title[:LONGEST_TITLE])
    content = {name: _storable(value) for name, value in asdict(short).items()}
    try:
        with transaction.atomic():
            delivery = Delivery.objects.create(
                project=project, identifier=identifier[:100], digest=digest, event=content, due=timezone.now()
            )
    except IntegrityError:
        return _respond(200, "This was delivered before.")
    try:
        current_app.send_task("perfweb.forges.tasks.act", [delivery.pk], retry=False)
    except (BrokerError, OSError):
        log.warning("delivery %s waits: Redis does not answer", delivery)
    return _respond(202, "Thank you.")


def _storable(value: object) -> object:
    """Text that PostgreSQL can store: no NUL, no half of a surrogate pair."""
    return value.encode("utf-8", "replace").decode().replace("\0", "?") if isinstance(value, str) else value


def _respond(status: int, words: str) -> HttpResponse:
    return HttpResponse(f"{words}\n", content_type="text/plain; charset=utf-8", status=status)
