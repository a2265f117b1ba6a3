"""Why a message cannot be used, as one fixed word."""

from __future__ import annotations

from enum import StrEnum


class RejectReason(StrEnum):
    """Why a message is a dead letter. Each is permanent: the same bytes will end the same way again.

    Most are found by decoding, and say why the message is no interaction and no label. The last three: the scorer
    failed on it alone, the database refused it alone, no client can decode the record itself. Only a label is a
    ``bad_label``, whose word is none, or about an ``unknown_sentence`` of an answer that is known.
    """

    NULL_VALUE = "null_value"
    EMPTY_VALUE = "empty_value"
    TOO_LARGE = "too_large"
    INVALID_UTF8 = "invalid_utf8"
    INVALID_JSON = "invalid_json"
    NON_FINITE_NUMBER = "non_finite_number"
    TOO_DEEP = "too_deep"
    NOT_AN_OBJECT = "not_an_object"
    WRONG_SHAPE = "wrong_shape"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    INVALID_ENCODING = "invalid_encoding"
    TOO_MANY_ROWS = "too_many_rows"
    UNKNOWN_SCHEMA = "unknown_schema"
    BAD_LABEL = "bad_label"
    UNKNOWN_SENTENCE = "unknown_sentence"
    SCORING_FAILED = "scoring_failed"
    STORE_REJECTED = "store_rejected"
    UNREADABLE = "unreadable"
