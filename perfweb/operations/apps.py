# SPDX-License-Identifier: BSD-2-Clause
"""The app for operators."""

from django.apps import AppConfig


class OperationsConfig(AppConfig):
    name = "perfweb.operations"
