# SPDX-License-Identifier: BSD-2-Clause
"""Sources of hostile stacks, and the results of their attempts on a host."""
