# SPDX-License-Identifier: BSD-2-Clause

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('accounts', '0003_identities'),
    ]

    operations = [
        migrations.AlterField(
            model_name='entry',
            name='subject',
            field=models.CharField(blank=True, help_text="subject of the action: 'run 12'", max_length=200),
        ),
        migrations.AlterField(
            model_name='entry',
            name='token',
            field=models.CharField(blank=True, help_text='name of the token, if one was used', max_length=64),
        ),
        migrations.AlterField(
            model_name='entry',
            name='who',
            field=models.CharField(help_text="name of the account; of a command, that of the system's user", max_length=150),
        ),
        migrations.AlterField(
            model_name='identity',
            name='issuer',
            field=models.CharField(help_text='address of the provider', max_length=200),
        ),
        migrations.AlterField(
            model_name='identity',
            name='name',
            field=models.CharField(help_text='name at the provider when this was made', max_length=150),
        ),
        migrations.AlterField(
            model_name='identity',
            name='subject',
            field=models.CharField(help_text='permanent id at the provider', max_length=255),
        ),
        migrations.AlterField(
            model_name='token',
            name='name',
            field=models.CharField(help_text='purpose, and the machine that uses it', max_length=64),
        ),
    ]
