# SPDX-License-Identifier: BSD-2-Clause
"""Celery's tasks of the bots; what they lose, the next one finds."""

from celery import shared_task

from perfweb.forges import following, services
from perfweb.outbox import services as outbox


@shared_task
def act(number: int) -> None:
    """Handle the request of a delivery, and answer it."""
    services.act_on([number])
    following.follow()
    outbox.deliver()


@shared_task
def follow() -> None:
    """Do what is due, and say what is new."""
    services.act_on_all()
    following.follow()


@shared_task
def forget() -> None:
    """Delete the content of old deliveries."""
    services.forget()
