# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('lab', '0008_help_texts'),
    ]

    operations = [
        migrations.AddField(
            model_name='testbed',
            name='sample',
            field=models.CharField(blank=True, default='', help_text='where its results come from, if they are samples', max_length=200),
        ),
    ]
