# SPDX-License-Identifier: BSD-2-Clause
"""Keeping the service running: back-ups, and what tells whether it works."""
