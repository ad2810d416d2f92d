# SPDX-License-Identifier: BSD-2-Clause
"""State machines of models: one step from a state to another, with its line in the history, in one transaction."""

from collections.abc import Callable, Collection, Mapping
from typing import TypeVar

from django.db import models, transaction

Row = TypeVar("Row", bound=models.Model)
State = TypeVar("State", bound=models.TextChoices)


class IllegalTransitionError(ValueError):
    """The row is in a state without such a transition; the message names both states."""


@transaction.atomic
def change(
    rows: models.QuerySet[Row],
    number: int,
    to: State,
    allowed: Mapping[State, Collection[State]],
    before: Callable[[Row], None],
    after: Callable[[Row, State], None],
    fields: Collection[str] | None = None,
) -> Row:
    """Change the state of the row of `rows` with that number, and return it.

    The row is locked. `before` changes it while it has its old state and may raise an exception to prevent the step;
    `after` gets the old state and writes the history. `fields` are those that are saved, all by default. Raises
    IllegalTransitionError if `allowed` has no such step.
    """
    row = rows.select_for_update(of=("self",)).get(number=number)
    old = type(to)(row.state)  # type: ignore[attr-defined]
    if to not in allowed[old]:
        name = rows.model._meta.verbose_name
        raise IllegalTransitionError(f"{name} {number} is {old.label} and cannot become {to.label}")
    before(row)
    row.state = to  # type: ignore[attr-defined]
    row.save(update_fields=fields)
    after(row, old)
    return row
