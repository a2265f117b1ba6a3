"""kafka-python's errors in our words."""

from __future__ import annotations

import ssl

import pytest
from kafka import errors

from worker.broker.client import broker_error, connection_settings, translated
from worker.broker.errors import BrokerMisconfigured, BrokerUnavailable, TopicMissing


@pytest.mark.parametrize(
    "error",
    [
        errors.KafkaTimeoutError(),
        errors.KafkaConnectionError(),
        errors.NodeNotReadyError(),
        errors.NotCoordinatorError(),
        errors.UnknownError(),
        ConnectionResetError(),
    ],
)
def test_a_fault_that_may_pass_is_transient(error: Exception) -> None:
    found = broker_error(error, "cannot read")
    assert type(found) is BrokerUnavailable
    assert "GASP_KAFKA_BOOTSTRAP_SERVERS" in str(found)


@pytest.mark.parametrize(
    "error",
    [
        errors.TopicAuthorizationFailedError(),
        errors.GroupAuthorizationFailedError(),
        errors.SaslAuthenticationFailedError(),
        errors.InvalidSessionTimeoutError(),
        errors.UnsupportedCodecError(),
        ssl.SSLError(),
        FileNotFoundError(),
    ],
)
def test_a_fault_that_needs_a_person_says_what_to_do(error: Exception) -> None:
    found = broker_error(error, "cannot read")
    assert type(found) is BrokerMisconfigured
    assert str(found).startswith("cannot read: ")
    assert type(error).__name__ in str(found)


def test_the_bytes_that_an_error_quotes_are_not_passed_on() -> None:
    assert "secret" not in str(broker_error(errors.CorruptRecordError("found b'secret'"), "cannot read"))


def test_only_security_settings_pass_as_such() -> None:
    settings = connection_settings("host:1", "me", {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"})
    assert settings["security_protocol"] == "SASL_SSL"
    with pytest.raises(BrokerMisconfigured, match="enable_auto_commit"):
        connection_settings("host:1", "me", {"enable_auto_commit": True})


def test_our_own_errors_pass_through_a_translation() -> None:
    with pytest.raises(TopicMissing), translated("cannot read"):
        raise TopicMissing("topic")
