# SPDX-License-Identifier: BSD-2-Clause
"""Scripts in packetdrill's language against the stack, in virtual time (`./dev conformance`)."""
