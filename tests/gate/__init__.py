# SPDX-License-Identifier: BSD-2-Clause
"""`./dev test`: all tests and linters as jobs of one scheduler."""
