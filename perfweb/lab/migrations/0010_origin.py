# SPDX-License-Identifier: BSD-2-Clause
"""Testbeds have an origin of their results, in place of whether they simulate."""

from django.db import migrations, models

TO_ORIGIN = "UPDATE lab_testbed SET origin = 'simulated' WHERE simulated"
TO_SIMULATED = "UPDATE lab_testbed SET simulated = true WHERE origin = 'simulated'"


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0009_sample'),
    ]

    operations = [
        migrations.AddField(
            model_name='testbed',
            name='origin',
            field=models.CharField(choices=[('measured', 'measured'), ('simulated', 'simulated'), ('counted', 'counted')], default='measured', help_text='how its results come about', max_length=9),
        ),
        migrations.RunSQL(TO_ORIGIN, TO_SIMULATED),
        migrations.RemoveField(
            model_name='testbed',
            name='simulated',
        ),
        migrations.AddConstraint(
            model_name='testbed',
            constraint=models.CheckConstraint(condition=models.Q(('origin__in', ['measured', 'simulated', 'counted'])), name='testbed_origin_known'),
        ),
    ]
