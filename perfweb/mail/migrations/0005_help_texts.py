# SPDX-License-Identifier: BSD-2-Clause

import django.contrib.postgres.fields
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('mail', '0004_unknown_senders'),
    ]

    operations = [
        migrations.AlterField(
            model_name='posting',
            name='mbox',
            field=models.BinaryField(help_text='the input of perfweb.builds.patches'),
        ),
        migrations.AlterField(
            model_name='posting',
            name='request',
            field=models.TextField(blank=True, help_text='the text after `perf:`'),
        ),
        migrations.AlterField(
            model_name='series',
            name='changed',
            field=models.DateTimeField(default=django.utils.timezone.now, help_text='time of its newest mail'),
        ),
        migrations.AlterField(
            model_name='series',
            name='copy_to',
            field=models.CharField(blank=True, help_text='address of the mailing list', max_length=254),
        ),
        migrations.AlterField(
            model_name='series',
            name='proven',
            field=models.BooleanField(default=False, help_text='whether a signature proves the sender of all its mails'),
        ),
        migrations.AlterField(
            model_name='series',
            name='reply_to',
            field=django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=254), default=list, help_text='addresses for responses, if not the sender', size=None),
        ),
        migrations.AlterField(
            model_name='series',
            name='trailer',
            field=models.BooleanField(default=False, help_text='whether a line Perf-tested-by was requested'),
        ),
    ]
