# SPDX-License-Identifier: BSD-2-Clause
"""The project's dependencies: the bill of materials, and published advisories."""
