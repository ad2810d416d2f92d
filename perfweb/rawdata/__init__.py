# SPDX-License-Identifier: BSD-2-Clause
"""Raw data: tables, archives and their replay."""
