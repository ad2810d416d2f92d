# SPDX-License-Identifier: BSD-2-Clause
"""Submitted patches, and the runs that compare them with their base."""

from django.apps import AppConfig


class SubmissionsConfig(AppConfig):
    name = "perfweb.submissions"
