# SPDX-License-Identifier: BSD-2-Clause
"""Plans, runs and everything a run leaves behind."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "perfweb.runs"
