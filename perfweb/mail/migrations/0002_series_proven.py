from typing import Any

from django.db import migrations, models


def mark_proven(apps: Any, _: Any) -> None:
    """A series has a user only if the sender of each mail was proven."""
    apps.get_model('mail', 'Series').objects.filter(user__isnull=False).update(proven=True)


class Migration(migrations.Migration):

    dependencies = [
        ('mail', '0001_initial'),
    ]

    operations = [
        migrations.AddField(
            model_name='series',
            name='proven',
            field=models.BooleanField(default=False, help_text='whether a signature proves the sender of every mail of it'),
        ),
        migrations.RunPython(mark_proven, migrations.RunPython.noop),
    ]
