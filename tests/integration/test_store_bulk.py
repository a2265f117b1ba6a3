"""Rows by the thousand, each of which must keep what is its own."""

from __future__ import annotations

from dataclasses import replace

from sqlalchemy import Column, Connection, Double, Integer, MetaData, Table, Text
from sqlalchemy.dialects.postgresql import ARRAY

from tests.integration.store_examples import advance, prepared, rows, scored
from worker.store.bulk import Values, arrays, insert_from_arrays
from worker.store.store import Store

NAMES = ("id", "words", "numbers", "shares")


def test_every_row_of_a_batch_has_the_repairs_of_its_own_message(store: Store, database_url: str) -> None:
    scorer_id, threshold = prepared(store)
    repairs = [("nul",), (), ("bom", "nul"), ("lone_surrogate", 'a "quoted, {odd} one\\'), ()]
    batch = []
    for offset, own in enumerate(repairs):
        settlement = scored(offset, f"id-{offset}", [0.9], threshold)
        assert settlement.decoded is not None
        batch.append(replace(settlement, decoded=replace(settlement.decoded, repairs=own)))
    store.settlements.settle(scorer_id, batch, [advance(0, len(batch))])
    stored = rows(database_url, "SELECT repairs FROM interactions ORDER BY source_offset")
    assert [tuple(row["repairs"]) for row in stored] == repairs


def test_arrays_of_any_type_come_back_as_they_were_given_with_the_row_that_they_were_given_with(store: Store) -> None:
    table = Table(
        "lists",
        MetaData(),
        Column("id", Integer),
        Column("words", ARRAY(Text)),
        Column("numbers", ARRAY(Integer)),
        Column("shares", ARRAY(Double)),
        prefixes=["TEMPORARY"],
    )
    given: list[Values] = [
        (1, ["a", None, 'b"'], [3, 1, 2], [0.5]),
        (2, [], None, []),
        (3, None, [], None),
        (4, ["", "\N{STEAM LOCOMOTIVE}"], [7], [-1.25, None]),
    ]

    def work(connection: Connection) -> list[Values]:
        table.create(connection)
        connection.execute(insert_from_arrays(table, NAMES), arrays(NAMES, given))
        found = [tuple(row) for row in connection.execute(table.select().order_by(table.c.id))]
        table.drop(connection)
        return found

    assert store.settlements.database.write(work) == given
