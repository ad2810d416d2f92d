# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('builds', '0005_mirror'),
    ]

    operations = [
        migrations.AlterField(
            model_name='build',
            name='prefix',
            field=models.TextField(blank=True, help_text='path of the installed build on the device under test'),
        ),
        migrations.AlterField(
            model_name='build',
            name='seconds',
            field=models.FloatField(blank=True, help_text='duration of the build; empty if not yet built', null=True),
        ),
        migrations.AlterField(
            model_name='mirror',
            name='branch',
            field=models.CharField(default='main', help_text='the usual base of patches', max_length=100),
        ),
    ]
