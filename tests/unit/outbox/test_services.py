# SPDX-License-Identifier: BSD-2-Clause
"""No letter is lost, and none is sent twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from perfweb.outbox.models import Letter
from perfweb.outbox.services import FIRST_PAUSE, PATIENCE, LaterError, NeverError, deliver, forget, post, retry

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)
SECOND, HOUR = timedelta(seconds=1), timedelta(hours=1)
heard: list[dict[str, Any]] = []
trouble: list[Exception] = []


def listen(letter: Letter) -> str:
    """The recipient: it accepts letters, or fails as configured."""
    if trouble:
        raise trouble[0]
    heard.append(letter.content)
    return f"number {len(heard)}"


@pytest.fixture(autouse=True)
def other_side(settings: Settings) -> None:
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.listen"}
    heard.clear()
    trouble.clear()


def test_what_is_posted_is_reported_once_and_again_when_it_changes() -> None:
    post("test:a", "k", {"text": "one"}, NOW)
    post("test:a", "k", {"text": "one"}, NOW)
    assert [deliver(NOW), deliver(NOW + HOUR)] == [1, 0]
    post("test:a", "k", {"text": "one"}, NOW + HOUR)
    assert deliver(NOW + HOUR) == 0
    post("test:a", "k", {"text": "two"}, NOW + HOUR)
    post("test:a", "k", {"text": "three"}, NOW + HOUR)
    assert deliver(NOW + HOUR) == 1
    assert (heard, Letter.objects.get().reference) == ([{"text": "one"}, {"text": "three"}], "number 2")


def test_letter_is_delivered_after_the_clock_was_put_back() -> None:
    post("test:a", "k", {"text": "one"}, NOW)
    assert [deliver(NOW - HOUR), deliver(NOW - HOUR)] == [1, 0]


def test_nothing_is_lost_while_the_other_side_is_down_for_a_day() -> None:
    trouble.append(LaterError("down", everything=True))
    for number in range(3):
        post("test:a", f"k{number}", {"number": number}, NOW)
    clock = NOW
    while clock < NOW + timedelta(days=1):
        assert deliver(clock) == 0
        clock += timedelta(minutes=10)
    assert set(Letter.objects.values_list("problem", flat=True)) == {"down", ""}
    trouble.clear()
    deliver(clock + timedelta(minutes=1))
    assert sorted(content["number"] for content in heard) == [0, 1, 2]


def test_no_delivery_before_the_time_that_the_server_names() -> None:
    trouble.append(LaterError("too many", 3 * HOUR, everything=True))
    post("test:a", "k", {}, NOW)
    post("test:a", "l", {}, NOW)
    post("test:b", "k", {}, NOW)
    deliver(NOW)
    trouble.clear()
    assert [deliver(NOW + 3 * HOUR - SECOND), deliver(NOW + 3 * HOUR)] == [0, 3]


def test_a_retry_sends_what_waits_in_its_channel_and_forgets_long_pauses() -> None:
    trouble.append(LaterError("refused"))
    for channel in ("test:a", "test:b"):
        post(channel, "k", {}, NOW)
    clock = NOW
    for _ in range(12):
        deliver(clock)
        clock += HOUR
    assert deliver(clock - 30 * 60 * SECOND) == 0
    assert retry("test:a", clock - HOUR / 2) == 1
    deliver(clock - HOUR / 2)
    assert Letter.objects.get(channel="test:a").attempts == 2, "its first response may be lost"
    trouble.clear()
    assert retry("test:a", clock - HOUR / 2) == 1
    assert deliver(clock - HOUR / 2) == 1
    assert retry("test:a", clock) == 0


def test_a_retry_leaves_out_a_letter_that_is_being_sent(settings: Settings) -> None:
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.retry_while_listening"}
    post("test:a", "k", {}, NOW)
    deliver(NOW)
    assert heard == [{"retried": 0}]


class Death(BaseException):
    """The process ends while it sends."""


def die(_: Letter) -> str:
    raise Death


def test_a_retry_includes_a_letter_whose_sender_died(settings: Settings) -> None:
    trouble.append(LaterError("refused"))
    post("test:a", "k", {}, NOW)
    clock = NOW
    for _ in range(6):
        deliver(clock)
        clock += HOUR
    trouble.clear()
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.die"}
    with pytest.raises(Death):
        deliver(clock)
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.listen"}
    assert retry("test:a", clock + FIRST_PAUSE - SECOND) == 0, "a sender may take so long"
    assert retry("test:a", clock + FIRST_PAUSE) == 1
    assert deliver(clock + FIRST_PAUSE) == 1


def retry_while_listening(letter: Letter) -> str:
    heard.append({"retried": retry(letter.channel, NOW)})
    return "number 1"


def test_a_channel_waits_without_the_others() -> None:
    post("test:a", "k", {}, NOW)
    trouble.append(LaterError("too many", 3 * HOUR, everything=True))
    deliver(NOW)
    trouble.clear()
    post("test:b", "k", {}, NOW)
    assert deliver(NOW + HOUR) == 1


def test_a_message_that_can_never_be_delivered_is_kept_with_its_reason() -> None:
    post("test:a", "k", {}, NOW)
    trouble.append(NeverError("there is no such comment"))
    deliver(NOW)
    trouble.clear()
    assert deliver(NOW + HOUR) == 0
    assert Letter.objects.get().problem == "there is no such comment"
    post("test:a", "k", {"text": "new"}, NOW)
    assert deliver(NOW) == 1


def test_patience_ends_and_a_bug_is_no_loss() -> None:
    post("test:a", "k", {}, NOW)
    trouble.append(KeyError("bug"))
    deliver(NOW)
    assert Letter.objects.get().due is not None
    deliver(NOW + PATIENCE + SECOND)
    letter = Letter.objects.get()
    assert (letter.due, letter.problem) == (None, "no success in 14 days: KeyError('bug')")


def test_what_was_sent_long_ago_is_forgotten_and_can_still_be_edited(settings: Settings) -> None:
    settings.MESSAGES_KEPT_DAYS = 30
    post("test:a", "old", {"text": "one"}, NOW)
    post("test:a", "new", {"text": "two"}, NOW + timedelta(days=1))
    deliver(NOW + timedelta(days=1))
    trouble.append(LaterError("down"))
    post("test:a", "waiting", {"text": "three"}, NOW)
    deliver(NOW)
    kept = NOW + timedelta(days=30)
    assert [forget(kept), forget(kept + SECOND), forget(kept + SECOND)] == [0, 1, 0]
    contents = dict(Letter.objects.values_list("key", "content"))
    assert contents == {"old": {}, "new": {"text": "two"}, "waiting": {"text": "three"}}
    trouble.clear()
    changed = post("test:a", "old", {"text": "four"}, kept)
    assert (changed.reference, deliver(kept)) == ("number 1", 2)


def test_a_message_that_changes_during_its_delivery_is_delivered_again(settings: Settings) -> None:
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.change_while_listening"}
    post("test:a", "k", {"text": "one"}, NOW)
    deliver(NOW)
    assert heard == [{"text": "one"}]
    settings.OUTBOX_SENDERS = {"test": f"{__name__}.listen"}
    assert deliver(NOW) == 1
    assert heard == [{"text": "one"}, {"text": "two"}]


def change_while_listening(letter: Letter) -> str:
    post(letter.channel, letter.key, {"text": "two"}, NOW)
    return listen(letter)
