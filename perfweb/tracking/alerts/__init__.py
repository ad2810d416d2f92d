# SPDX-License-Identifier: BSD-2-Clause
"""Alerts: confirmation, explanation, bisection, notification, and their track record."""
