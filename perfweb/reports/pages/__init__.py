# SPDX-License-Identifier: BSD-2-Clause
"""A module for each kind of page."""
