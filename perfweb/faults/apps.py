# SPDX-License-Identifier: BSD-2-Clause
"""Faults of single items, and the loops that isolate them."""

from django.apps import AppConfig


class FaultsConfig(AppConfig):
    name = "perfweb.faults"
