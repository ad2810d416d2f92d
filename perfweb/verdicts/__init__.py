# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts: which sides are compared, how they compare, what puts that in doubt, and all of it in words."""
