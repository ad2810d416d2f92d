# SPDX-License-Identifier: BSD-2-Clause
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("forges", "0003_comment_request")]

    operations = [
        migrations.AddField(
            "CommentRequest",
            "waiting",
            models.BooleanField(default=False, help_text="whether it failed and is tried again"),
        ),
    ]
