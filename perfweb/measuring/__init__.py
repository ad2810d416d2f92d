# SPDX-License-Identifier: BSD-2-Clause
"""Measurements from the tool to the database: the order of boots, calls of tools and their output, the spool."""
