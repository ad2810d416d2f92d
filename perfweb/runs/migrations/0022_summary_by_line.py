# SPDX-License-Identifier: BSD-2-Clause
"""An index of the lines of timelines, from which the newest results of one line are read without those of the others."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("runs", "0021_summary_lack")]

    operations = [
        migrations.AddIndex(
            model_name="summary",
            index=models.Index(fields=["series", "test", "run"], name="summary_by_line_and_run"),
        ),
    ]
