# SPDX-License-Identifier: BSD-2-Clause
"""Bots on forges: comments on pull requests become submissions, and results become comments and statuses."""
