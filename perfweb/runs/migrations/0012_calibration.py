# SPDX-License-Identifier: BSD-2-Clause
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0011_priority'),
    ]

    operations = [
        migrations.CreateModel(
            name='Calibration',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('test', models.CharField(max_length=64)),
                ('boots', models.PositiveIntegerField(help_text='of all variants that are the same')),
                ('samples', models.PositiveIntegerField(help_text='on all boots together')),
                ('boot_deviation', models.FloatField(help_text='between boots, beyond what the samples explain')),
                ('sample_deviation', models.FloatField(help_text='between the samples of a boot')),
                ('boot_seconds', models.FloatField(help_text='what a boot takes beside its samples')),
                ('confidence', models.FloatField(help_text='percent, at which the rules told differences')),
                ('comparisons', models.PositiveIntegerField(help_text='experiments of which the rates of false alarms are')),
                ('disjoint', models.PositiveIntegerField(help_text='so many experiments have no boot in common')),
                ('blocks', models.PositiveIntegerField(help_text='boots of each side in an experiment')),
                ('alarms', models.JSONField(default=dict, help_text="{rule: {'share': 0.05, 'width': 1.2}}")),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='calibrations', to='runs.run')),
            ],
            options={
                'ordering': ['-run_id', 'test'],
                'indexes': [models.Index(fields=['test', '-run'], name='calibration_by_test_and_run')],
                'constraints': [models.UniqueConstraint(fields=('run', 'test'), name='calibration_once_per_run_and_test')],
            },
        ),
    ]
