# SPDX-License-Identifier: BSD-2-Clause
"""The app of the sample results."""

from django.apps import AppConfig


class SamplesConfig(AppConfig):
    name = "perfweb.samples"
