# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('runs', '0019_seeds'),
    ]

    operations = [
        migrations.AlterField(
            model_name='boot',
            name='command',
            field=models.TextField(blank=True, help_text='the exact command line of the boot'),
        ),
        migrations.AlterField(
            model_name='boot',
            name='layout',
            field=models.PositiveSmallIntegerField(help_text='seed of the link order of the stack', null=True),
        ),
        migrations.AlterField(
            model_name='boot',
            name='position',
            field=models.PositiveIntegerField(help_text='position in the order of the run, from 0'),
        ),
        migrations.AlterField(
            model_name='boot',
            name='seed',
            field=models.PositiveIntegerField(help_text='seed of the simulated machine; null if measured', null=True),
        ),
        migrations.AlterField(
            model_name='boot',
            name='sentinel',
            field=models.BooleanField(db_default=False, default=False, help_text='boot of the sentinel, which is in no verdict'),
        ),
        migrations.AlterField(
            model_name='boot',
            name='server',
            field=models.CharField(help_text='server program: netserver, iperf3, tcpconnect', max_length=24),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='boot_deviation',
            field=models.FloatField(help_text='between boots, without that of the samples'),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='boot_seconds',
            field=models.FloatField(help_text='seconds of a boot besides its samples'),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='boots',
            field=models.PositiveIntegerField(help_text='number of samples of all equal variants'),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='comparisons',
            field=models.PositiveIntegerField(help_text='number of experiments for the false positive rates'),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='confidence',
            field=models.FloatField(help_text='confidence of the rules in percent'),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='disjoint',
            field=models.PositiveIntegerField(help_text='number of experiments without common boots'),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='layout_deviation',
            field=models.FloatField(help_text='between layouts of the same code, if there were several', null=True),
        ),
        migrations.AlterField(
            model_name='calibration',
            name='samples',
            field=models.PositiveIntegerField(help_text='deviation on all boots together'),
        ),
        migrations.AlterField(
            model_name='import',
            name='format',
            field=models.CharField(help_text='format: csv, netperf …', max_length=24),
        ),
        migrations.AlterField(
            model_name='import',
            name='options',
            field=models.JSONField(default=dict, help_text='options of reading: other options make another import'),
        ),
        migrations.AlterField(
            model_name='import',
            name='origin',
            field=models.TextField(help_text='comment about the origin of the results'),
        ),
        migrations.AlterField(
            model_name='loss',
            name='step',
            field=models.CharField(help_text="state of the run, or 'boot 3' by its position", max_length=24),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='command',
            field=models.TextField(help_text='the exact command line, in shell syntax'),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='environment',
            field=models.JSONField(blank=True, default=dict, help_text='possible disturbance: controller_load'),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='gauges',
            field=models.JSONField(blank=True, default=list, help_text='gauges of the host for each sample, by index'),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='interim',
            field=models.JSONField(blank=True, db_default=[], default=list, help_text='reported throughput within each sample, by index: [[seconds, bits/s], …]'),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='metric',
            field=models.CharField(help_text='the compared metric of its samples', max_length=32),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='reason',
            field=models.TextField(blank=True, help_text='reason if it failed or is void'),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='test',
            field=models.CharField(help_text='name of the test: tcp.rr/host-host/ipv4', max_length=64),
        ),
        migrations.AlterField(
            model_name='measurement',
            name='voids',
            field=models.PositiveIntegerField(default=0, help_text='number of void samples'),
        ),
        migrations.AlterField(
            model_name='run',
            name='priority',
            field=models.SmallIntegerField(choices=[(-1, 'low'), (0, 'normal'), (1, 'high')], default=0, help_text='priority in the queue'),
        ),
        migrations.AlterField(
            model_name='run',
            name='reason',
            field=models.TextField(blank=True, help_text='reason of the state, if it needs one'),
        ),
        migrations.AlterField(
            model_name='run',
            name='seed',
            field=models.PositiveIntegerField(default=0, help_text='seed of the random order, by which a user can repeat it'),
        ),
        migrations.AlterField(
            model_name='sample',
            name='discarded',
            field=models.BooleanField(default=False, help_text='warm-up: shown, but not in statistics'),
        ),
        migrations.AlterField(
            model_name='sample',
            name='index',
            field=models.PositiveIntegerField(help_text='index within the measurement, from 0, with warm-up'),
        ),
        migrations.AlterField(
            model_name='sample',
            name='seconds',
            field=models.FloatField(help_text='wall-clock time of the tool'),
        ),
        migrations.AlterField(
            model_name='sample',
            name='void',
            field=models.TextField(blank=True, db_default='', default='', help_text='reason if a validity gate fired; then not in statistics'),
        ),
        migrations.AlterField(
            model_name='summary',
            name='at',
            field=models.DateTimeField(help_text='time of the built commit, or of the run without one'),
        ),
        migrations.AlterField(
            model_name='summary',
            name='boots_differ',
            field=models.BooleanField(default=False, help_text='whether boots differ by more than their samples scatter'),
        ),
        migrations.AlterField(
            model_name='summary',
            name='change',
            field=models.FloatField(help_text='change from the baseline in percent; empty without an interval', null=True),
        ),
        migrations.AlterField(
            model_name='summary',
            name='revision',
            field=models.CharField(blank=True, help_text='revision of the build', max_length=80),
        ),
        migrations.AlterField(
            model_name='summary',
            name='rules',
            field=models.CharField(blank=True, help_text="digest of the statistics' version", max_length=16),
        ),
        migrations.AlterField(
            model_name='summary',
            name='series',
            field=models.CharField(help_text='testbed/plan/variant: a line of a timeline', max_length=180),
        ),
        migrations.AlterField(
            model_name='variant',
            name='position',
            field=models.PositiveSmallIntegerField(help_text='position in the plan, from 0'),
        ),
    ]
