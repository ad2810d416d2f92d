# SPDX-License-Identifier: BSD-2-Clause
"""The versioned REST API: what the pages show, for programs. One module for each resource."""
