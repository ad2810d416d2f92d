# SPDX-License-Identifier: BSD-2-Clause
"""Series of Patchwork, and checks of their patches."""

from django.apps import AppConfig


class PatchworkConfig(AppConfig):
    name = "perfweb.patchwork"
