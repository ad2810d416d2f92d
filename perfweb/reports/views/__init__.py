# SPDX-License-Identifier: BSD-2-Clause
"""One module for each kind of page."""
