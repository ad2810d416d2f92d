# SPDX-License-Identifier: BSD-2-Clause
"""Pages and raw data."""

from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "perfweb.reports"
