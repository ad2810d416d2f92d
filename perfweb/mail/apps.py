# SPDX-License-Identifier: BSD-2-Clause
"""Patches by mail, and the responses to them."""

from django.apps import AppConfig


class MailConfig(AppConfig):
    name = "perfweb.mail"
