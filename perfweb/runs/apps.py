# SPDX-License-Identifier: BSD-2-Clause
"""Plans, runs and their results."""

from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "perfweb.runs"
