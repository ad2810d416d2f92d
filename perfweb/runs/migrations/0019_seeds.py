# SPDX-License-Identifier: BSD-2-Clause
from django.db import migrations, models

OF_COMMANDS = r"""
UPDATE runs_boot SET seed = found.seed
FROM (
    SELECT DISTINCT ON (boot_id) boot_id, substring(command FROM ' --seed ([0-9]{1,9})')::integer AS seed
    FROM runs_measurement WHERE tool = 'simstack' AND command ~ ' --seed [0-9]{1,9}' ORDER BY boot_id, id
) AS found
WHERE runs_boot.id = found.boot_id
"""
"""The commands of simulations have named their seed from the first one on."""


class Migration(migrations.Migration):
    dependencies = [("runs", "0018_paused")]

    operations = [
        migrations.AddField(
            "boot",
            "seed",
            models.PositiveIntegerField(null=True, help_text="seed of the simulated machine; null where it was measured"),
        ),
        migrations.RunSQL(OF_COMMANDS, migrations.RunSQL.noop),
    ]
