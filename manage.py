#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Django's command line; `./dev` sets the environment it reads."""

import os
import sys

from django.core.management import execute_from_command_line


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
