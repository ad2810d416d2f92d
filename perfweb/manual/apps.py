# SPDX-License-Identifier: BSD-2-Clause
"""Documentation pages."""

from django.apps import AppConfig


class ManualConfig(AppConfig):
    name = "perfweb.manual"
