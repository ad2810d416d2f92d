# SPDX-License-Identifier: BSD-2-Clause
"""Programs that this lane starts."""

ENDS_WITH_PARENT = ("setpriv", "--pdeathsig", "TERM")
"""Words before a program that ends even if this process is killed (setpriv(1), PR_SET_PDEATHSIG in prctl(2))."""
