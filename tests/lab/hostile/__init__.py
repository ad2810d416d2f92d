# SPDX-License-Identifier: BSD-2-Clause
"""Sources of stacks that want more than to be measured, and what a host gives them."""
