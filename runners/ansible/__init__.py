# SPDX-License-Identifier: BSD-2-Clause
"""The playbooks are played here: the driver, a server that has imported Ansible, the packing of modules, the guard."""
