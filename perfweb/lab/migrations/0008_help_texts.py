# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0007_command_line_words'),
    ]

    operations = [
        migrations.AlterField(
            model_name='healthcheck',
            name='holder',
            field=models.CharField(help_text="the reason of the check: 'run 12'", max_length=64),
        ),
        migrations.AlterField(
            model_name='healthcheck',
            name='problems',
            field=models.JSONField(default=list, help_text='problems in words; empty if all hosts are fit'),
        ),
        migrations.AlterField(
            model_name='lease',
            name='account',
            field=models.CharField(blank=True, help_text='the account of the holder, by which testbed time is shared', max_length=150),
        ),
        migrations.AlterField(
            model_name='lease',
            name='holder',
            field=models.CharField(help_text="the holder in words: 'run 12'", max_length=64),
        ),
        migrations.AlterField(
            model_name='lease',
            name='problem',
            field=models.TextField(blank=True, help_text='why the hosts could not be restored; the testbed is out of service until they are'),
        ),
        migrations.AlterField(
            model_name='lease',
            name='recalled',
            field=models.BooleanField(default=False, help_text='the holder must clean up and release the testbed'),
        ),
        migrations.AlterField(
            model_name='lease',
            name='worker',
            field=models.CharField(blank=True, help_text='the Celery worker of the holder', max_length=255),
        ),
        migrations.AlterField(
            model_name='testbed',
            name='command_line_words',
            field=models.JSONField(blank=True, help_text='kernel parameters that plans may add to the command line of dut; null for the default list', null=True),
        ),
        migrations.AlterField(
            model_name='testbed',
            name='faults',
            field=models.PositiveIntegerField(default=0, help_text='faults of the testbed in a row since a run was prepared'),
        ),
        migrations.AlterField(
            model_name='testbed',
            name='lab',
            field=models.SlugField(blank=True, help_text="the lab whose own worker drives it; empty for the service's worker", max_length=32),
        ),
        migrations.AlterField(
            model_name='testbed',
            name='simulated',
            field=models.BooleanField(default=False, help_text='whether its results come from the simulated machine'),
        ),
    ]
