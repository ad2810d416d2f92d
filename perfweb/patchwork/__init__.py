# SPDX-License-Identifier: BSD-2-Clause
"""Projects of Patchwork (https://getpatchwork.org): their series are submitted, and their patches get checks."""
