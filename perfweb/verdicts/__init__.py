# SPDX-License-Identifier: BSD-2-Clause
"""Verdicts: the compared sides, the comparisons, the doubts about them, and their wording."""
