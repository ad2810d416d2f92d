from django.db import migrations, models


class Migration(migrations.Migration):
    """Testbeds that could not be restored are out of service."""

    dependencies = [("lab", "0001_initial")]

    operations = [
        migrations.AddField(
            model_name="lease",
            name="problem",
            field=models.TextField(
                blank=True,
                default="",
                help_text="why the hosts could not be restored: the testbed is out of service until they are",
            ),
            preserve_default=False,
        ),
    ]
