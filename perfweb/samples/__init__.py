# SPDX-License-Identifier: BSD-2-Clause
"""Sample results, with which a new site shows what it can do before it has measured anything."""
