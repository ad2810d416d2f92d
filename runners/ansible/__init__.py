# SPDX-License-Identifier: BSD-2-Clause
"""Plays the playbooks: the driver, a server that has imported Ansible, the packing of modules, the guard."""
