# SPDX-License-Identifier: BSD-2-Clause
"""Results from elsewhere become runs: one module reads each format, `write` makes the runs."""
