# SPDX-License-Identifier: BSD-2-Clause
from typing import Any

from django.conf import settings
from django.db import migrations

OLD, NEW = "strangers-by-mail", "unknown-senders"


def _rename(apps: Any, old: str, new: str) -> None:
    users = apps.get_model(*settings.AUTH_USER_MODEL.split("."))
    if not users.objects.filter(username=new).exists():
        users.objects.filter(username=old).update(username=new)


class Migration(migrations.Migration):
    """The account that has the patches of mails without an account gets another name, and keeps its role and state."""

    dependencies = [("mail", "0003_reply_to"), migrations.swappable_dependency(settings.AUTH_USER_MODEL)]

    operations = [
        migrations.RunPython(
            lambda apps, _: _rename(apps, OLD, NEW),
            lambda apps, _: _rename(apps, NEW, OLD),
        )
    ]
