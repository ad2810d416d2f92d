# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds: who is wired to whom, and whose turn it is."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    name = "perfweb.lab"
