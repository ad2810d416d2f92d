# SPDX-License-Identifier: BSD-2-Clause
"""Downloads: tables, documents and archives of runs, comparisons and series (docs/reference/data.md)."""
