"""Certificates for tests of TLS, as the PEM files that servers and clients read."""

from __future__ import annotations

from pathlib import Path

import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

CLIENT = "certified"
KEY_PASSWORD = "0pen-the-key"


def write_certificates(folder: Path) -> None:
    """Write what a server named ``localhost`` and its clients need; each ``X.pem`` has its key in ``X-key.pem``.

    ``ca.pem`` has signed ``server.pem``, and ``client.pem`` for the user CLIENT, whose key is in
    ``client-locked-key.pem`` once more, under KEY_PASSWORD. ``other-ca.pem`` has signed ``stranger.pem`` for the same
    user.
    """
    authority, other = trustme.CA(), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    other.cert_pem.write_to_path(folder / "other-ca.pem")
    client = authority.issue_cert(f"{CLIENT}@localhost", common_name=CLIENT)
    _write(folder, "server", authority.issue_cert("localhost"))
    _write(folder, "client", client)
    _write(folder, "stranger", other.issue_cert(f"{CLIENT}@localhost", common_name=CLIENT))
    _write_key(folder / "client-locked-key.pem", client, BestAvailableEncryption(KEY_PASSWORD.encode()))


def _write(folder: Path, name: str, certificate: trustme.LeafCert) -> None:
    certificate.cert_chain_pems[0].write_to_path(folder / f"{name}.pem")
    _write_key(folder / f"{name}-key.pem", certificate, NoEncryption())


def _write_key(path: Path, certificate: trustme.LeafCert, encryption: KeySerializationEncryption) -> None:
    """As PKCS #8, the only form that Apache Kafka reads, and for its owner alone, as PostgreSQL demands."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    path.touch(mode=0o600)
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
