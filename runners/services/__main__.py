# SPDX-License-Identifier: BSD-2-Clause
"""`python -m runners.services`."""

import sys

from runners.services.supervisor import main

if __name__ == "__main__":
    sys.exit(main())
