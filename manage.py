#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Django's command line, for what `./dev serve` serves unless the environment names something else."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "perfweb.settings.development")
    try:
        execute_from_command_line(sys.argv)
    except KeyboardInterrupt:
        sys.exit(130)
    except OperationalError as error:
        # Only a server that was reached gives its errors a code.
        if "--traceback" in sys.argv or getattr(error.__cause__, "sqlstate", None):
            raise
        reason = " ".join(str(error).split())
        sys.exit(f"manage.py: no database: {reason}\nStart one with ./dev serve, or say where it is: PERFWEB_PGHOST")


if __name__ == "__main__":
    main()
