# SPDX-License-Identifier: BSD-2-Clause
"""Faults: exceptions of single items in unattended loops."""
