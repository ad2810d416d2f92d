# SPDX-License-Identifier: BSD-2-Clause
from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("mail", "0002_series_proven")]

    operations = [
        migrations.AddField(
            "series",
            "reply_to",
            ArrayField(
                models.CharField(max_length=254), default=list, help_text="where answers go, if not to the sender"
            ),
        )
    ]
