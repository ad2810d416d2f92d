# SPDX-License-Identifier: BSD-2-Clause

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('builds', '0006_help_texts'),
        ('submissions', '0002_mirror'),
    ]

    operations = [
        migrations.AlterField(
            model_name='submission',
            name='base',
            field=models.CharField(help_text='the commit to which it is applied', max_length=40),
        ),
        migrations.AlterField(
            model_name='submission',
            name='content',
            field=models.CharField(blank=True, help_text='hash of base, patched trees and plan', max_length=64),
        ),
        migrations.AlterField(
            model_name='submission',
            name='mirror',
            field=models.ForeignKey(blank=True, help_text="repository of the base; empty for the service's own", null=True, on_delete=django.db.models.deletion.PROTECT, related_name='submissions', to='builds.mirror'),
        ),
        migrations.AlterField(
            model_name='submission',
            name='patch',
            field=models.BinaryField(help_text='the patch as received'),
        ),
        migrations.AlterField(
            model_name='submission',
            name='plan',
            field=models.TextField(help_text='the YAML plan of its runs'),
        ),
        migrations.AlterField(
            model_name='submission',
            name='reason',
            field=models.TextField(blank=True, help_text='reason of the state, if it needs one'),
        ),
        migrations.AlterField(
            model_name='submission',
            name='seconds',
            field=models.PositiveIntegerField(help_text='estimated testbed time when it was received'),
        ),
        migrations.AlterField(
            model_name='submissiontransition',
            name='from_state',
            field=models.CharField(blank=True, choices=[('received', 'received'), ('conflict', 'does not apply'), ('waiting', 'waiting for approval'), ('approved', 'approved'), ('refused', 'refused'), ('cancelled', 'cancelled')], help_text='empty for the first step', max_length=16),
        ),
    ]
