# SPDX-License-Identifier: BSD-2-Clause
"""Builds of a target, named by their content."""

from django.apps import AppConfig


class BuildsConfig(AppConfig):
    name = "perfweb.builds"
