# SPDX-License-Identifier: BSD-2-Clause
"""Labs of three hosts on one machine, and power switches of real hosts."""
