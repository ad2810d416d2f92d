# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('faults', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='fault',
            name='advice',
            field=models.TextField(help_text='advice for the operator'),
        ),
        migrations.AlterField(
            model_name='fault',
            name='lasting',
            field=models.BooleanField(default=False, help_text='stays until it is cleared, even if it does not repeat'),
        ),
        migrations.AlterField(
            model_name='fault',
            name='task',
            field=models.CharField(help_text='action on the item: recover, deliver …', max_length=64),
        ),
    ]
