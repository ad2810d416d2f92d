# SPDX-License-Identifier: BSD-2-Clause
"""Letters, and their delivery."""

from django.apps import AppConfig


class OutboxConfig(AppConfig):
    name = "perfweb.outbox"
