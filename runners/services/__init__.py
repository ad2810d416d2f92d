# SPDX-License-Identifier: BSD-2-Clause
"""The supervisor of the private services: databases and the processes of the product."""
