# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('outbox', '0001_initial'),
    ]

    operations = [
        migrations.AlterField(
            model_name='letter',
            name='attempts',
            field=models.PositiveIntegerField(default=0, help_text='failed attempts, with the current one'),
        ),
        migrations.AlterField(
            model_name='letter',
            name='channel',
            field=models.CharField(help_text='KIND:NAME; OUTBOX_SENDERS maps the kind to its sender', max_length=80),
        ),
        migrations.AlterField(
            model_name='letter',
            name='due',
            field=models.DateTimeField(blank=True, help_text='when to try; empty if nothing is left to send', null=True),
        ),
        migrations.AlterField(
            model_name='letter',
            name='problem',
            field=models.TextField(blank=True, help_text='error of the last attempt'),
        ),
        migrations.AlterField(
            model_name='letter',
            name='reference',
            field=models.CharField(blank=True, help_text='identifier of the message at the recipient', max_length=500),
        ),
        migrations.AlterField(
            model_name='letter',
            name='since',
            field=models.DateTimeField(help_text='time of this content'),
        ),
    ]
