# SPDX-License-Identifier: BSD-2-Clause
"""Bots on forges."""

from django.apps import AppConfig


class ForgesConfig(AppConfig):
    name = "perfweb.forges"
