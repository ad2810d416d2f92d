# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds, their hosts, and leases of them."""

from django.apps import AppConfig


class LabConfig(AppConfig):
    name = "perfweb.lab"
