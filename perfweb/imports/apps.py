# SPDX-License-Identifier: BSD-2-Clause
from django.apps import AppConfig


class ImportsConfig(AppConfig):
    name = "perfweb.imports"
