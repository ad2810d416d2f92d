# SPDX-License-Identifier: BSD-2-Clause

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0020_help_texts'),
        ('tracking', '0003_issues'),
    ]

    operations = [
        migrations.AlterField(
            model_name='alert',
            name='conclusion',
            field=models.TextField(blank=True, help_text='result of confirmation and bisection; empty while they continue'),
        ),
        migrations.AlterField(
            model_name='alert',
            name='culprit',
            field=models.ForeignKey(blank=True, help_text='the result of bisection', null=True, on_delete=django.db.models.deletion.PROTECT, related_name='blamed', to='tracking.trackedcommit'),
        ),
        migrations.AlterField(
            model_name='alert',
            name='probability',
            field=models.FloatField(blank=True, help_text='probability of the culprit', null=True),
        ),
        migrations.AlterField(
            model_name='alertstep',
            name='to_state',
            field=models.CharField(blank=True, choices=[('new', 'being confirmed'), ('refuted', 'not seen again'), ('confirmed', 'confirmed'), ('acknowledged', 'acknowledged'), ('fixed', 'fixed'), ('not-a-bug', 'not a bug'), ('infrastructure', 'infrastructure')], help_text='empty if unchanged', max_length=16),
        ),
        migrations.AlterField(
            model_name='analysis',
            name='rules',
            field=models.CharField(help_text="digest of the statistics' version", max_length=16),
        ),
        migrations.AlterField(
            model_name='movement',
            name='confirmed',
            field=models.BooleanField(help_text='empty before a run', null=True),
        ),
        migrations.AlterField(
            model_name='movement',
            name='percent',
            field=models.FloatField(help_text='verdict of the interleaved run; empty before it', null=True),
        ),
        migrations.AlterField(
            model_name='trackedbranch',
            name='analysed',
            field=models.CharField(blank=True, help_text='digest of the last analysed results', max_length=64),
        ),
        migrations.AlterField(
            model_name='trackedbranch',
            name='budget',
            field=models.PositiveIntegerField(default=240, help_text='minutes of testbed time for confirming and bisecting one change'),
        ),
        migrations.AlterField(
            model_name='trackedbranch',
            name='looked',
            field=models.DateTimeField(blank=True, help_text='time of the last listing of its commits', null=True),
        ),
        migrations.AlterField(
            model_name='trackedbranch',
            name='mail_to',
            field=models.TextField(blank=True, help_text='addresses that get a mail for each confirmed change, one on a line'),
        ),
        migrations.AlterField(
            model_name='trackedbranch',
            name='plan',
            field=models.TextField(help_text='the YAML plan of its runs; its variants are built from the commit'),
        ),
        migrations.AlterField(
            model_name='trackedbranch',
            name='problem',
            field=models.TextField(blank=True, help_text='why its commits could not be listed, or packed'),
        ),
        migrations.AlterField(
            model_name='trackedcommit',
            name='position',
            field=models.PositiveIntegerField(help_text='its position on the branch, from 1; empty once the branch has been rewritten without it', null=True),
        ),
        migrations.AlterField(
            model_name='trackedcommit',
            name='runs',
            field=models.ManyToManyField(help_text='the run of this commit alone', related_name='tracked_commits', to='runs.run'),
        ),
        migrations.AlterField(
            model_name='trackedcommit',
            name='wanted',
            field=models.BooleanField(default=False, help_text='selected by the rhythm'),
        ),
    ]
