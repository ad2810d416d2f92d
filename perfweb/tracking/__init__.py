# SPDX-License-Identifier: BSD-2-Clause
"""Tracked branches: commits measured as they arrive; changes confirmed, explained and reported."""
