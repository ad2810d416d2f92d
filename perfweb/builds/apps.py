# SPDX-License-Identifier: BSD-2-Clause
"""Builds of a target, named by what went into them."""

from django.apps import AppConfig


class BuildsConfig(AppConfig):
    name = "perfweb.builds"
