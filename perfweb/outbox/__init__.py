# SPDX-License-Identifier: BSD-2-Clause
"""What the service has to say elsewhere, in comments and mails: kept until it has been said."""
