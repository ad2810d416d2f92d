# SPDX-License-Identifier: BSD-2-Clause
"""Patches that come by mail, and the answers to them."""

from django.apps import AppConfig


class MailConfig(AppConfig):
    name = "perfweb.mail"
