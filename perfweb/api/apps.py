# SPDX-License-Identifier: BSD-2-Clause
"""The REST API."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    name = "perfweb.api"
