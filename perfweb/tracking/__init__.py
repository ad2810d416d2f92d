# SPDX-License-Identifier: BSD-2-Clause
"""Tracked branches: commits measured as they come, changes confirmed, explained and told."""
