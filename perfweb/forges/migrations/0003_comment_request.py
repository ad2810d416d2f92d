# SPDX-License-Identifier: BSD-2-Clause
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("forges", "0002_help_texts")]

    operations = [
        migrations.RenameModel("Asked", "CommentRequest"),
        migrations.AlterModelOptions("CommentRequest", options={"ordering": ["pk"]}),
        migrations.AlterField(
            "CommentRequest",
            "project",
            models.ForeignKey(on_delete=models.CASCADE, related_name="requests", to="forges.project"),
        ),
        migrations.RenameIndex("CommentRequest", new_name="request_by_pull", old_name="asked_by_pull"),
        migrations.RemoveConstraint("CommentRequest", name="asked_once"),
        migrations.AddConstraint(
            "CommentRequest", models.UniqueConstraint(fields=("project", "comment"), name="request_once")
        ),
    ]
