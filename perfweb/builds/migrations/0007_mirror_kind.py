# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('builds', '0006_help_texts'),
    ]

    operations = [
        migrations.AddField(
            model_name='mirror',
            name='kind',
            field=models.CharField(choices=[('stack', 'the stack'), ('linux', 'the Linux kernel')], default='stack', help_text='what its sources are, which decides what a patch may change', max_length=8),
        ),
        migrations.AddConstraint(
            model_name='mirror',
            constraint=models.CheckConstraint(condition=models.Q(('kind__in', ['stack', 'linux'])), name='mirror_kind_known'),
        ),
    ]
