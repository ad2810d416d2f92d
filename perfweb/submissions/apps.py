# SPDX-License-Identifier: BSD-2-Clause
"""Patches that people submit, and the runs that compare them with their base."""

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    name = "perfweb.submissions"
