"""A broker that requires TLS and a password, with valid and with invalid certificates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import trustme
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import (
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from stream_fs.broker import Broker, running_broker
from tests.support.topics import TIMEOUT_SECONDS

GOOD: Final = "GOOD"
EXPIRED: Final = "EXPIRED"
ELSEWHERE: Final = "ELSEWHERE"
"""Listeners, each with a certificate: one that is right, an old one, one of another host."""
USER: Final = "stream-fs"
PASSWORD: Final = "correct-horse-battery"
WRONG: Final = "wrong-horse-staple"


@dataclass(frozen=True)
class Guarded:
    """The broker, the authority that has signed its certificates, and one that has not."""

    broker: Broker
    authority: Path
    stranger: Path
    admin: AdminClient
    """One that may do everything."""

    def connection(self, listener: str = GOOD) -> dict[str, str]:
        """The settings of a client that comes in, but for the password."""
        return {
            "kafka.bootstrap": self.broker.address(listener),
            "kafka.properties.security.protocol": "SASL_SSL",
            "kafka.properties.ssl.ca.location": str(self.authority),
            "kafka.properties.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.properties.sasl.username": USER,
        }


@contextmanager
def guarded_broker(folder: Path) -> Iterator[Guarded]:
    ours, theirs = trustme.CA(), trustme.CA()
    past = datetime.now(UTC) - timedelta(days=2)
    here = ("127.0.0.1", "localhost")
    certificates = {
        GOOD: ours.issue_cert(*here),
        EXPIRED: ours.issue_cert(*here, not_before=past, not_after=past + timedelta(days=1)),
        ELSEWHERE: ours.issue_cert("broker.example"),
    }
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Who comes over the plain listener, and so without a name, may do everything.
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    for listener, certificate in certificates.items():
        properties |= _listener(listener, certificate)
    authority, stranger = folder / "ca.pem", folder / "stranger.pem"
    ours.cert_pem.write_to_path(str(authority))
    theirs.cert_pem.write_to_path(str(stranger))
    listeners = dict.fromkeys(certificates, "SASL_SSL")
    with running_broker(log_dir=folder, listeners=listeners, properties=properties) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        _let_in(admin)
        yield Guarded(broker, authority, stranger, admin)


def _listener(name: str, certificate: trustme.LeafCert) -> Mapping[str, str]:
    """Its certificate, as texts: a broker in a container sees no files of ours."""
    key = load_pem_private_key(certificate.private_key_pem.bytes(), None)
    text = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    chain = "".join(part.bytes().decode() for part in certificate.cert_chain_pems)
    prefix = f"listener.name.{name.lower()}"
    return {
        f"{prefix}.ssl.keystore.type": "PEM",
        f"{prefix}.ssl.keystore.key": text,
        f"{prefix}.ssl.keystore.certificate.chain": chain,
        f"{prefix}.scram-sha-512.sasl.jaas.config": (
            "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        ),
    }


def _let_in(admin: AdminClient) -> None:
    """Give the user a password, and the right to everything that is not denied."""
    credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    wanted = UserScramCredentialUpsertion(USER, credential, PASSWORD.encode())
    for answer in admin.alter_user_scram_credentials([wanted]).values():
        answer.result(TIMEOUT_SECONDS)
    rights = [
        acl(kind, "*", AclPermissionType.ALLOW)
        for kind in (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
    ]
    for allowed in admin.create_acls(rights).values():
        allowed.result(TIMEOUT_SECONDS)


def acl(kind: ResourceType, name: str, permission: AclPermissionType) -> AclBinding:
    """Everything, for the user, on a thing or on all of its kind."""
    literal = ResourcePatternType.LITERAL
    return AclBinding(kind, name, literal, f"User:{USER}", "*", AclOperation.ALL, permission)
