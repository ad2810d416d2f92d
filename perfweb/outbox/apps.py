# SPDX-License-Identifier: BSD-2-Clause
"""Letters, and what delivers them."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    name = "perfweb.outbox"
