# SPDX-License-Identifier: BSD-2-Clause
"""What operators need."""

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "perfweb.operations"
