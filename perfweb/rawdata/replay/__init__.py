# SPDX-License-Identifier: BSD-2-Clause
"""Replay bundles, the archives of runs: read as untrusted input, and analysed without a database."""
