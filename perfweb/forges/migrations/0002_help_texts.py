# SPDX-License-Identifier: BSD-2-Clause

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('forges', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.AlterField(
            model_name='asked',
            name='answer',
            field=models.TextField(blank=True, help_text='error in place of results'),
        ),
        migrations.AlterField(
            model_name='asked',
            name='head',
            field=models.CharField(blank=True, help_text='the commit to measure', max_length=40),
        ),
        migrations.AlterField(
            model_name='asked',
            name='settled',
            field=models.BooleanField(default=False, help_text="whether the service's comment is final"),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='due',
            field=models.DateTimeField(blank=True, help_text='when to handle it; empty if that is done', null=True),
        ),
        migrations.AlterField(
            model_name='delivery',
            name='event',
            field=models.JSONField(help_text='parsed content (perfweb.forges.table.Event)'),
        ),
        migrations.AlterField(
            model_name='project',
            name='account',
            field=models.ForeignKey(help_text='author of requests by users without an account', on_delete=django.db.models.deletion.PROTECT, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AlterField(
            model_name='project',
            name='login',
            field=models.CharField(help_text="the bot's account name there, whose comments are ignored", max_length=100),
        ),
    ]
