"""Reads that requests share: each gets its own rows, one that gives up spoils nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from published import AS_OF, BANKS, CARDS
from tidemill.errors import StoreError
from tidemill.online.answers import shared_reads
from tidemill.online.answers.served_view import ServedView
from tidemill.online.answers.shared_reads import SharedReads
from tidemill.online.published_view import PublishedView
from tidemill.online.store import Key, Row

BANK, CARD = ServedView(BANKS), ServedView(CARDS)


class Slow:
    """A store whose rows hold their keys; it keeps how many keys each read asked for."""

    def __init__(self, fails: bool = False):
        self.reads: list[tuple[str, int]] = []
        self.fails = fails

    async def read_async(self, view: PublishedView, keys: Sequence[Key]) -> list[Row | None]:
        self.reads.append((view.view, len(keys)))
        await asyncio.sleep(0.01)
        if self.fails:
            raise StoreError("gone")
        return [Row(key, 1, AS_OF) for key in keys]


def asked(store: Any, questions: Sequence[tuple[ServedView, list[Key]]]) -> list[Any]:
    """Ask all questions at once."""

    async def all_of_them() -> list[Any]:
        shared = SharedReads(store)
        tasks = [shared.rows([question]) for question in questions]
        return await asyncio.gather(*tasks, return_exceptions=True)

    return asyncio.run(all_of_them())


def test_one_waits_for_nobody_and_many_share() -> None:
    store = Slow()
    questions = [(BANK, [(n,)] * (n % 3 + 1)) for n in range(20)]
    answers = asked(store, questions)
    for (_, keys), (rows,) in zip(questions, answers, strict=True):
        assert [row.values for row in rows] == keys
    assert len(store.reads) <= 3
    assert sum(count for _, count in store.reads) == sum(len(keys) for _, keys in questions)


def test_views_are_read_apart_and_reads_stay_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_reads, "MOST", 10)
    store = Slow()
    questions = [(view, [(n,)] * 4) for n in range(6) for view in (BANK, CARD)]
    answers = asked(store, questions)
    for (_, keys), (rows,) in zip(questions, answers, strict=True):
        assert [row.values for row in rows] == keys
    assert {view for view, _ in store.reads} == {"banks", "cards"}
    assert max(count for _, count in store.reads) <= 10


def test_a_read_that_fails_fails_for_all_who_share_it_and_the_next_goes_on() -> None:
    store = Slow(fails=True)

    async def twice() -> tuple[list[Any], Any]:
        shared = SharedReads(store)
        tasks = [shared.rows([(BANK, [(n,)])]) for n in range(4)]
        first = await asyncio.gather(*tasks, return_exceptions=True)
        store.fails = False
        return first, await shared.rows([(BANK, [(9,)])])

    failed, (rows,) = asyncio.run(twice())
    assert all(isinstance(error, StoreError) for error in failed)
    assert rows[0].values == (9,)


def test_one_that_gives_up_leaves_the_read_to_the_others() -> None:
    async def ask() -> tuple[Any, Any]:
        shared = SharedReads(Slow())  # type: ignore[arg-type]
        gone = asyncio.create_task(shared.rows([(BANK, [(1,)])]))
        others = [asyncio.create_task(shared.rows([(BANK, [(n,)])])) for n in (2, 3)]
        await asyncio.sleep(0)
        gone.cancel()
        return await asyncio.gather(gone, *others, return_exceptions=True), shared

    (gone, second, third), shared = asyncio.run(ask())
    assert isinstance(gone, asyncio.CancelledError)
    assert [rows[0][0].values for rows in (second, third)] == [(2,), (3,)]
    assert shared._under_way == 0
