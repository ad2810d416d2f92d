# SPDX-License-Identifier: BSD-2-Clause
"""Branches whose commits are measured."""

from django.apps import AppConfig


class TrackingConfig(AppConfig):
    name = "perfweb.tracking"
