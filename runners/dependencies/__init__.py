# SPDX-License-Identifier: BSD-2-Clause
"""What the project depends on: its bill of materials, and published advisories."""
