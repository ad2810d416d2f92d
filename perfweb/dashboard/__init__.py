# SPDX-License-Identifier: BSD-2-Clause
"""The first page: an overview of everything that is measured."""
