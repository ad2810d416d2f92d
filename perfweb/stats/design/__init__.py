# SPDX-License-Identifier: BSD-2-Clause
"""Design of experiments: how many boots and samples are needed, and how often verdicts are wrong."""
