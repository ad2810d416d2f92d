# SPDX-License-Identifier: BSD-2-Clause
"""Pages about what was measured."""
