from __future__ import annotations

import contextlib
import json
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from schemas.errors import UnusablePayload
from schemas.payload import MAX_DEPTH, Parsed, parse_json, present
from schemas.reject_reason import RejectReason
from schemas.repair import Repair
from schemas.text import replace_unstorable

MEGABYTE = 1_000_000


def rejection(text: bytes) -> UnusablePayload:
    with pytest.raises(UnusablePayload) as raised:
        parse_json(text)
    return raised.value


def test_a_value_must_be_there_and_within_the_limit() -> None:
    assert present(b"abc", max_bytes=3) == b"abc"
    for value, reason in ((None, RejectReason.NULL_VALUE), (b"abcd", RejectReason.TOO_LARGE)):
        with pytest.raises(UnusablePayload) as raised:
            present(value, max_bytes=3)
        assert raised.value.reason is reason


@pytest.mark.parametrize("text", [b"", b" \t\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
def test_nothing_but_white_space_is_empty(text: bytes) -> None:
    assert rejection(text).reason is RejectReason.EMPTY_VALUE


def test_a_byte_order_mark_is_taken_off() -> None:
    assert parse_json(b"\xef\xbb\xbf[1]") == Parsed([1], (Repair.BOM,))


@pytest.mark.parametrize(
    "number",
    ["NaN", "-NaN", "nan", "Infinity", "-Infinity", "inf", "1e999", "-1E+400", "9" * 400, "9" * 5000, "-" + "9" * 5000],
)
def test_a_number_that_no_double_holds_is_named(number: str) -> None:
    refused = rejection(f'{{"é😀": [1, {number}]}}'.encode())
    assert refused.reason is RejectReason.NON_FINITE_NUMBER
    assert number not in refused.detail


@pytest.mark.parametrize(
    "text", [b"nul", b"[1.]", b"[-]", b"[+1]", b"[01]", b"info", b'["a\nb"]', b"{} {}", b'{"a":1,}', b"{'a'}"]
)
def test_broken_json_is_not_taken_for_a_bad_number(text: bytes) -> None:
    assert rejection(text).reason is RejectReason.INVALID_JSON


def test_words_for_numbers_inside_text_are_text() -> None:
    assert parse_json(b'["NaN", "1e999", "Infinity"]').value == ["NaN", "1e999", "Infinity"]


def test_integers_beyond_64_bits_become_floats() -> None:
    assert parse_json(b"[18446744073709551615, 18446744073709551616]").value == [2**64 - 1, 2.0**64]


def test_of_a_key_that_comes_twice_the_last_counts() -> None:
    assert parse_json(b'{"a": 1, "a": 2}').value == {"a": 2}


@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}")])
def test_nesting_is_bounded(opening: bytes, closing: bytes) -> None:
    parse_json(opening * MAX_DEPTH + b"1" + closing * MAX_DEPTH)
    for depth in (MAX_DEPTH + 1, 1_000, 100_000):
        assert rejection(opening * depth + b"1" + closing * depth).reason is RejectReason.TOO_DEEP


def test_brackets_that_do_not_nest_or_are_text_do_not_count() -> None:
    assert parse_json(b"[" + b"[]," * 500 + b"[]]").value == [[]] * 501
    assert parse_json(b'["' + b'[{\\"' * 500 + b'"]').value == ['[{"' * 500]


@pytest.mark.parametrize(
    "text", [b'["\xff"]', b'["\xc0\x80"]', b'["\xed\xa0\x80"]', b'["\xf0\x9f\x98', '["é"]'.encode("latin-1")]
)
def test_bytes_that_are_no_utf8_are_named(text: bytes) -> None:
    assert rejection(text).reason is RejectReason.INVALID_UTF8


@pytest.mark.parametrize(
    ("escaped", "text", "repairs"),
    [
        (r"\ud83d", "\ufffd", ("lone_surrogate",)),
        (r"\uDE00x", "\ufffdx", ("lone_surrogate",)),
        (r"\ud83d\ud83d\ude00", "\ufffd😀", ("lone_surrogate",)),
        (r"\ud83d\ude00\ude00", "😀\ufffd", ("lone_surrogate",)),
        (r"\ude00\ud83d", "\ufffd\ufffd", ("lone_surrogate",)),
        (r"\ud83dx\ude00", "\ufffdx\ufffd", ("lone_surrogate",)),
        (r"\\ud83d", r"\ud83d", ()),
        (r"\\\ud83d", "\\\ufffd", ("lone_surrogate",)),
        (r"\u0000\\u0000\\\u0000", "\ufffd\\u0000\\\ufffd", ("nul",)),
        (r"\u0000\ud83d", "\ufffd\ufffd", ("nul", "lone_surrogate")),
        (r"\ud83d\ude00", "😀", ()),
    ],
)
def test_what_cannot_be_stored_is_replaced_one_for_one(escaped: str, text: str, repairs: tuple[str, ...]) -> None:
    expected: JsonValue = {text: [text]}
    parsed = parse_json(f'{{"{escaped}": ["{escaped}"]}}'.encode())
    assert (parsed.value, parsed.repairs) == (expected, repairs)


@pytest.mark.parametrize("text", [rb'["\ud8"]', rb'["\u00"]', rb'["\ud83d', rb'["\ud83d\q"]', rb'["\u0000'])
def test_repairing_does_not_make_broken_json_valid(text: bytes) -> None:
    assert rejection(text).reason is RejectReason.INVALID_JSON


@given(st.text(st.characters() | st.sampled_from('\x00\\"/u0d83\ud83d\ude00\ufeff')))
@settings(deadline=None)
def test_any_text_comes_back_with_only_unstorable_characters_replaced(text: str) -> None:
    # The standard library keeps lone surrogates and joins pairs, which are one character in JSON.
    joined = json.loads(json.dumps(text))
    assert parse_json(json.dumps([text]).encode()).value == [replace_unstorable(joined)]


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":"' + b'\\"' * (MEGABYTE // 2),
        b"[" * 200 + b'"' + b'\\"' * (MEGABYTE // 2),
        b'{"a":"' + b"a\\ud83d" * (MEGABYTE // 7) + b'"}',
        b'{"a":"' + b"\\n" * (MEGABYTE // 2) + b'\\u0000\\ud8"}',
        b'{"a":[' + b"[]," * (MEGABYTE // 3) + b"1]}",
        b'{"a":' + b"9" * MEGABYTE + b"}",
        b"\\" * MEGABYTE,
        b"-" * MEGABYTE,
    ],
    ids=["quotes", "quotes in brackets", "surrogates", "escapes", "brackets", "digits", "backslashes", "minuses"],
)
def test_a_hostile_megabyte_takes_linear_time(text: bytes) -> None:
    # Quadratic would be minutes. The bound leaves room for a busy machine.
    begin = time.process_time()
    with contextlib.suppress(UnusablePayload):
        parse_json(text)
    assert time.process_time() - begin < 5
