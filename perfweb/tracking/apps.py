# SPDX-License-Identifier: BSD-2-Clause
"""Branches whose every commit is watched."""

from django.apps import AppConfig


class TrackingConfig(AppConfig):
    name = "perfweb.tracking"
