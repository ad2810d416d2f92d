# SPDX-License-Identifier: BSD-2-Clause

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('builds', '0007_mirror_kind'),
    ]

    operations = [
        migrations.CreateModel(
            name='Packing',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source_sha256', models.CharField(help_text='name of the archive', max_length=64, unique=True)),
                ('commit', models.CharField(max_length=40)),
                ('patch', models.BinaryField(default=b'')),
                ('patches', models.PositiveSmallIntegerField(default=0, help_text='0 is the commit itself')),
                ('problem', models.TextField(blank=True, help_text='why they cannot be packed')),
                ('due', models.DateTimeField(default=django.utils.timezone.now, help_text='when a messenger packs them, or tries again')),
                ('mirror', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='builds.mirror')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
    ]
