"""Which Secrets brokers in Kubernetes need, as a file of YAML says. The chart writes it.

ca: {namespace: a, name: mercast-ca}
certificates:
  - {namespace: a, name: mercast-broker-tls, role: broker, cluster: a, hosts: [mercast, mercast.a.svc], days: 365}
tokens: {name: mercast-tokens, namespaces: [a, b]}
labels: {app.kubernetes.io/managed-by: mercast}
"""

from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from mercast.security.certificates import DAYS
from mercast.security.errors import SecurityError

_Name = Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$")]
"""Of things in Kubernetes."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class CAPlan(_Part):
    namespace: _Name
    name: _Name


class CertificatePlan(_Part):
    namespace: _Name
    name: _Name
    role: Literal["broker", "edge"]
    cluster: Annotated[str, Field(min_length=1)]
    joins: list[str] = []
    hosts: list[str]
    days: int = Field(default=DAYS, ge=1)

    @model_validator(mode="after")
    def _check_joins(self) -> "CertificatePlan":
        if self.joins and self.role != "edge":
            raise ValueError("only an edge joins other clusters")
        return self


class TokensPlan(_Part):
    name: _Name
    namespaces: Annotated[list[_Name], Field(min_length=1)]


class Plan(_Part):
    ca: CAPlan | None = None
    certificates: list[CertificatePlan] = []
    tokens: TokensPlan | None = None
    labels: dict[str, str] = {}

    @model_validator(mode="after")
    def _check_ca(self) -> "Plan":
        if self.certificates and self.ca is None:
            raise ValueError(
                "certificates are signed by a CA: say where it is, as in ca: {namespace: a, name: mercast-ca}"
            )
        return self


def read_plan(file: Path) -> Plan:
    """SecurityError tells all mistakes."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SecurityError(f"{file} cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise SecurityError(f"{file} is not YAML: {error}") from None
    try:
        return Plan.model_validate(document)
    except ValidationError as error:
        mistakes = (f"  {_place(one['loc'])}{one['msg']}" for one in error.errors())
        raise SecurityError("\n".join([f"{file} is no plan:", *mistakes])) from None


def _place(where: tuple[int | str, ...]) -> str:
    return ".".join(map(str, where)) + ": " if where else ""
