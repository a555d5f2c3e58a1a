"""The configuration of a broker. Later wins: defaults < YAML file < environment < flags.

What is wrong is told all at once, each with its key, where its value came from, and what would be right.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ByteSize, Field, FiniteFloat, ValidationError, ValidationInfo, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from mercast.broker.addresses import ADMIN_PORT, CLIENT_PORT, PEER_PORT, parse_address
from mercast.broker.config_clusters import (
    MOST_CLUSTER,
    MOST_ID,
    ClusterConfig,
    check_links,
    check_members,
    check_seeds,
    reachable,
    read_clusters,
    read_joins,
    read_rules,
    unfit,
)
from mercast.broker.config_kubernetes import KUBERNETES, from_pod, id_in_pod, unfit_for_kubernetes
from mercast.broker.config_security import exposed
from mercast.broker.config_sources import PREFIX, ConfigError, explained, from_environment, from_file, from_flags
from mercast.content.declarations import read_declarations
from mercast.content.errors import ContentError
from mercast.content.types import Declaration
from mercast.limits import DEFAULTS
from mercast.overlay.neighbourhood import Timing
from mercast.overlay.split import Rule
from mercast.protocol.tap_messages import Held
from mercast.routing.settings import Settings
from mercast.routing.strategies import strategy_named
from mercast.security.errors import SecurityError
from mercast.security.state import Files, Security, in_file, read_security
from mercast.taps.settings import TapSettings, check_where

__all__ = ["MOST_ID", "BrokerConfig", "ConfigError", "load"]

_MIB = 1024 * 1024
_LEAST_QUEUE = 64 * 1024
"""With less, a burst of some small events would be too much."""

_ROUTING = Settings()


def _split_commas(value: Any) -> Any:
    """Environment and flags have no lists."""
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _none_if_empty(value: Any) -> Any:
    return None if value == "" else value


Listed = Annotated[list[str], NoDecode, BeforeValidator(_split_commas)]
OptionalPath = Annotated[Path | None, BeforeValidator(_none_if_empty)]
Seconds = Annotated[FiniteFloat, Field(gt=0)]
Size = Annotated[ByteSize, Field(ge=_LEAST_QUEUE)]


class BrokerConfig(BaseSettings):
    model_config = SettingsConfigDict(
        env_prefix=PREFIX, extra="forbid", frozen=True, use_attribute_docstrings=True, coerce_numbers_to_str=True
    )

    # -- who and where -----------------------------------------------------------------------------------------------
    id: int = Field(ge=0, le=MOST_ID)
    """The number of this broker, which no other broker has, in this cluster or in others that events cross to. With
    `membership` kubernetes it follows from the pod."""
    cluster: str = Field(default="default", min_length=1, max_length=DEFAULTS.name_length)
    """The cluster of brokers that this one belongs to, without slashes. Peers of another cluster are refused."""
    cluster_number: int = Field(default=0, ge=0, le=MOST_CLUSTER)
    """The number of the cluster, which no other cluster has that events cross to or from."""
    strategy: str = "ddbr"
    """How events find their way. Peers with another strategy are refused."""
    listen: str = f"127.0.0.1:{CLIENT_PORT}"
    """Where clients connect. Port 0 takes any free one; IPv6 goes in brackets."""
    peer_listen: str = f"127.0.0.1:{PEER_PORT}"
    """Where other brokers connect."""
    admin_listen: str = f"127.0.0.1:{ADMIN_PORT}"
    """Where liveness, readiness, metrics, overlay and tables are served over HTTP; empty for nowhere."""
    advertise: str = ""
    """The address that clients are told; by default the one that was bound, in Kubernetes that of the pod."""
    peer_advertise: str = ""
    """The address that other brokers are told; by default the one that was bound, in Kubernetes that of the pod."""

    # -- security ----------------------------------------------------------------------------------------------------
    tls_cert: OptionalPath = None
    """The certificate that clients are shown, a PEM file. With it, clients connect by TLS only."""
    tls_key: OptionalPath = None
    """The key of `tls_cert`."""
    tls_client_ca: OptionalPath = None
    """The CA that clients must have a certificate of."""
    peer_cert: OptionalPath = None
    """The certificate that other brokers are shown: it names cluster and role. With it, brokers speak by TLS only."""
    peer_key: OptionalPath = None
    """The key of `peer_cert`."""
    peer_ca: OptionalPath = None
    """The CA that other brokers must have a certificate of."""
    tokens: OptionalPath = None
    """A YAML file of tokens and what each may publish and subscribe to. With it, clients need one."""
    admin_cert: OptionalPath = None
    """The certificate that admin HTTP shows. With it, it is HTTPS only."""
    admin_key: OptionalPath = None
    """The key of `admin_cert`."""
    admin_token: str = Field(default="", repr=False)
    """The bearer token that admin HTTP asks for: a file that holds it (with a slash in its path), or the token."""
    insecure: bool = False
    """Whether to listen beyond this machine even without TLS and tokens: everybody on the network may do everything."""

    # -- Kubernetes --------------------------------------------------------------------------------------------------
    membership: Literal["static", "kubernetes"] = "static"
    """Who says which brokers are there: `members` and `seeds` alone, or the Kubernetes API too (docs/kubernetes.md)."""
    ids_per_cluster: int = Field(default=100, ge=1, le=MOST_ID + 1)
    """Kubernetes: ids that each cluster has. Pod <set>-<ordinal> is broker cluster_number * ids_per_cluster + ordinal;
    edges count down from the top. All clusters that are joined must have the same."""
    kubernetes_namespace: str = ""
    """Kubernetes: the namespace of the broker's own pod; by default $POD_NAMESPACE."""
    kubernetes_pod: str = ""
    """Kubernetes: the name of the broker's own pod; by default $POD_NAME."""
    kubernetes_labels: str = ""
    """Kubernetes: selects the pods of the broker's own cluster, as in app=mercast,mercast/cluster=trading; by default
    the own pod's labels do."""
    backbone_namespaces: Listed = []
    """Kubernetes, MERC: namespaces in which an edge finds those of other clusters, for the first of `joins`."""

    # -- overlay -----------------------------------------------------------------------------------------------------
    members: Listed = []
    """The brokers of the cluster as id=host:port of their peer ports; this one may be among them. Those of a cluster
    that it joins have its name and a slash before them, as in backbone/7=10.0.0.7:7471."""
    seeds: Listed = []
    """Peer addresses of brokers to join the cluster by; of another cluster as in backbone/10.0.0.7:7471."""
    links: Listed = []
    """The links of the overlay as id-id, for experiments; by default they follow from the members."""
    joins: Listed = []
    """MERC: other clusters that this broker is in too, as name=number. That makes it an edge broker, which carries
    advertisements, subscriptions and events between its clusters."""
    exports: Listed = ["*"]
    """MERC: the types of events that an edge carries out of its own cluster: patterns such as stock.*, and such with a
    ! before them for what it does not."""
    imports: Listed = ["*"]
    """MERC: the same for what it carries into its own cluster."""
    degree: int = Field(default=6, ge=2, le=DEFAULTS.links, multiple_of=2)
    """Links that each broker of the overlay has, an even number; fewer in small clusters."""
    organise: Literal["off", "carried", "paper"] = _ROUTING.organise
    """Whether links move to where the traffic is, and by which rule: the paper's, or the one that also looks at what
    links carry for others and so comes to rest. Each broker then has at most `degree` links. All brokers of a cluster
    must have the same."""
    organise_every: Seconds = _ROUTING.organise_every
    """Seconds that messages are counted before a link moves, and that a move may take."""
    heart_beat: Seconds = Timing().heart_beat
    """Seconds between heart-beats of neighbours."""
    misses: int = Field(default=Timing().misses, ge=1)
    """Heart-beats without a word from a neighbour before it counts as down."""

    # -- routing -----------------------------------------------------------------------------------------------------
    settle_within: Seconds = _ROUTING.settle_within
    """Seconds before a client is told who has not acknowledged its subscription or advertisement."""
    purge_after: Seconds = _ROUTING.purge_after
    """Seconds that a broker must be out of reach before what it said is forgotten."""
    wait_for_route: Annotated[FiniteFloat, Field(ge=0)] = _ROUTING.wait_for_route
    """Seconds that an event waits for a route while news of the overlay travels."""
    rule: Rule = _ROUTING.rule
    """How destination lists are split among equal paths: as in the paper, or among as few neighbours as will do."""
    repair: bool = _ROUTING.repair
    """FBR: whether trees follow the shortest paths when those change."""
    covering: bool = _ROUTING.covering
    """FBR: whether subscriptions that another one covers are not passed on."""
    matcher: Literal["index", "scan"] = _ROUTING.matcher
    """How events are matched: by an index, or by evaluating every filter as the papers' cost model does."""
    types: OptionalPath = None
    """A YAML file of type declarations."""

    # -- what is told of it ------------------------------------------------------------------------------------------
    taps: str = ""
    """Where rows about all that the broker does go (docs/taps.md): kafka://host:9092, more servers after commas, or
    file:///folder; empty for nowhere."""
    sampling: Annotated[Annotated[FiniteFloat, Field(ge=0, le=1)] | None, BeforeValidator(_none_if_empty)] = None
    """Share of the events that the taps get rows of, from 0 to 1; traced events are always among them. By default 1 if
    there are taps, else 0."""
    taps_prefix: str = Field(default="mercast", pattern=r"^[A-Za-z0-9._-]{1,200}$")
    """What the names of the topics begin with."""
    taps_partitions: int = Field(default=4, ge=1, le=1_000)
    """Partitions of the topic of taps: as many as should be read at the same time."""
    taps_replication: int = Field(default=1, ge=1, le=100)
    """Copies that Kafka keeps of each topic, when it is made."""
    taps_retention_hours: Seconds = 24.0
    """Hours that Kafka keeps rows, when the topic is made."""
    taps_compression: Literal["none", "gzip", "lz4"] = "none"
    """Whether messages to Kafka are compressed: that costs processor time here, and saves network and disk there."""
    taps_buffer_bytes: ByteSize = Field(default=ByteSize(32 * _MIB), ge=_MIB)
    """What may wait to be shipped, some hundred thousand rows: enough for a restart of Kafka. Rows beyond it are lost,
    which shows in their numbers."""
    taps_file_bytes: ByteSize = Field(default=ByteSize(256 * _MIB), ge=_MIB)
    """The size at which a file of taps is full and the next begins."""
    taps_files: int = Field(default=4, ge=1)
    """Files that are kept for each topic, the one that is written included."""
    taps_attributes: Listed = ["all"]
    """What the taps may hold of events: `all` attributes, `none`, or those listed."""
    taps_filters: Listed = ["all"]
    """Of subscriptions and advertisements: the filters of `all`, of `none`, or of those for the types listed."""
    taps_clients: Listed = ["all"]
    """Of clients: the ids of `all`, of `none`, or those listed."""
    taps_tls: bool = False
    """Whether Kafka is spoken to by TLS."""
    taps_tls_ca: OptionalPath = None
    """The CA of Kafka's certificate; by default those that the system trusts."""
    taps_tls_cert: OptionalPath = None
    """The certificate that Kafka is shown."""
    taps_tls_key: OptionalPath = None
    """The key of `taps_tls_cert`."""
    taps_sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = ""
    """How Kafka is told who this is; empty for not at all."""
    taps_sasl_user: str = ""
    """The user's name."""
    taps_sasl_password: str = Field(default="", repr=False)
    """The password: a file that holds it (with a slash in its path), or the password."""
    record: OptionalPath = None
    """A file to write all stimuli to, for `mercast lab replay`; after a restart the broker goes on in it."""
    keep_stimuli: int = Field(default=5_000, ge=0)
    """Turns of which the stimuli are kept in memory for `mercast doctor` (docs/doctor.md); 0 for none."""
    keep_stimuli_bytes: Size = ByteSize(2 * _MIB)
    """The size of these stimuli as they came over the wire. Where few events came at a time, they take some times as
    much in memory."""
    log_format: Literal["console", "json", "auto"] = "auto"
    """Logs for people, or as lines of JSON; auto is console on a terminal and json elsewhere."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least level that is logged."""

    # -- limits ------------------------------------------------------------------------------------------------------
    publish_events_per_second: int = Field(default=0, ge=0)
    """What one client may publish; more is slowed, then refused. 0 is no limit: full links slow all publishers anyway,
    and how much is too much for one of them only its operator knows. Tokens have limits of their own."""
    publish_bytes_per_second: ByteSize = Field(default=ByteSize(0), ge=0)
    """The same in bytes of events, headers included."""
    client_queue_bytes: Size = ByteSize(8 * _MIB)
    """What may wait to be written to one client, some ten thousand small events: enough for a pause, and little enough
    for many slow ones. One that reads too slowly for it is disconnected."""
    link_queue_bytes: ByteSize = Field(default=ByteSize(32 * _MIB), ge=DEFAULTS.frame_bytes)
    """What may wait to be written to one neighbour: more than to a client, for the events of many travel there, and at
    least 4MiB, the largest frame. While much waits, whoever publishes for it waits; events beyond it are dropped."""
    handshake_seconds: Seconds = 5.0
    """How long a new connection may take to say who it is: enough for a busy machine, and those that never say it do
    not add up."""
    drain_seconds: Annotated[FiniteFloat, Field(ge=0)] = 5.0
    """How long a broker may take to leave after SIGTERM: clients move to other brokers, and what waits for clients and
    neighbours is sent. SIGINT waits for nobody."""
    max_connection_seconds: Annotated[FiniteFloat, Field(ge=0)] = 0.0
    """The age at which a client is told to go to another broker, so that clients spread anew; some are told earlier,
    so that not all leave at once. 0 is any age."""
    max_clients: int = Field(default=15_000, ge=1)
    """Clients connected at a time; fewer if there are no file descriptors for them. Each takes some kilobytes."""
    max_peers: int = Field(default=1_000, ge=1)
    """Connections that other brokers have made to the peer port at a time: some for each link, and one for each broker
    that asks who is there."""
    peer_items: int = Field(default=DEFAULTS.peer_items, ge=1)
    """Advertisements and subscriptions that one other broker may have this one keep; those beyond are not acknowledged,
    so that its clients are told that they are not settled here."""
    peer_bytes: Size = ByteSize(DEFAULTS.peer_bytes)
    """The memory of these, about: filters may be long."""
    all_peer_items: int = Field(default=DEFAULTS.all_peer_items, ge=1)
    """Advertisements and subscriptions that all other brokers together may have this one keep: a neighbour gone wrong
    might make up brokers, each with room of its own."""
    all_peer_bytes: Size = ByteSize(DEFAULTS.all_peer_bytes)
    """The memory of these, about."""

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        *others: PydanticBaseSettingsSource,  # noqa: ARG003
        **named: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what is given: `load` puts the sources together, and remembers which value came from where."""
        return (init_settings,)

    @field_validator("strategy")
    @classmethod
    def _check_strategy(cls, value: str) -> str:
        strategy_named(value)
        return value

    @field_validator("listen", "peer_listen", "admin_listen")
    @classmethod
    def _check_listen(cls, value: str, info: ValidationInfo) -> str:
        off = value == "" and info.field_name == "admin_listen"
        return value if off else str(parse_address(value, _PORTS[info.field_name or ""]))

    @field_validator("advertise", "peer_advertise")
    @classmethod
    def _check_advertised(cls, value: str, info: ValidationInfo) -> str:
        """What others are told must lead them here; when nothing is said, the address to listen on must."""
        name = info.field_name or ""
        if value != "":
            return str(reachable(value, _PORTS[name]))
        listen = name.replace("advertise", "listen")
        if listen in info.data and parse_address(info.data[listen]).is_everywhere:
            raise ValueError(f"{listen} is {info.data[listen]}, all addresses: say which of them others should use")
        return value

    @field_validator("seeds", "members", "links")
    @classmethod
    def _check_others(cls, value: list[str], info: ValidationInfo) -> list[str]:
        return _CHECKS[info.field_name or ""](value)

    @field_validator("cluster")
    @classmethod
    def _check_cluster(cls, value: str) -> str:
        if "/" in value:
            raise ValueError("the name of a cluster has no slash in it")
        return value

    @field_validator("joins")
    @classmethod
    def _check_joins(cls, value: list[str]) -> list[str]:
        read_joins(value)
        return value

    @field_validator("exports", "imports")
    @classmethod
    def _check_rules(cls, value: list[str]) -> list[str]:
        read_rules(value)
        return value

    @field_validator("types")
    @classmethod
    def _check_types(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("there is no such file; expected a YAML file of type declarations")
        return value

    @field_validator("record")
    @classmethod
    def _check_record(cls, value: Path | None) -> Path | None:
        if value is not None and (value.is_dir() or not value.parent.is_dir()):
            raise ValueError("expected a file in a folder that exists")
        return value

    @field_validator(*(key for key in Files._fields if key != "admin_token"))
    @classmethod
    def _check_file(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("there is no such file")
        return value

    @field_validator("taps")
    @classmethod
    def _check_taps(cls, value: str) -> str:
        if value:
            check_where(value)
        return value

    @field_validator("taps_tls_ca", "taps_tls_cert", "taps_tls_key")
    @classmethod
    def _check_taps_file(cls, value: Path | None) -> Path | None:
        if value is not None and not value.is_file():
            raise ValueError("there is no such file")
        return value

    @field_validator("taps_sasl_password")
    @classmethod
    def _check_password(cls, value: str) -> str:
        if in_file(value) and not Path(value).is_file():
            raise ValueError("there is no file of that name; a password that is given as it is has no slash in it")
        return value

    @field_validator("admin_token")
    @classmethod
    def _check_admin_token(cls, value: str) -> str:
        if in_file(value) and not Path(value).is_file():
            raise ValueError("there is no file of that name; a token that is given as it is has no slash in it")
        return value

    def settings(self) -> Settings:
        """What the strategy is told."""
        return Settings(
            timing=Timing(self.heart_beat, self.misses),
            rule=self.rule,
            repair=self.repair,
            covering=self.covering,
            matcher=self.matcher,
            settle_within=self.settle_within,
            purge_after=self.purge_after,
            wait_for_route=self.wait_for_route,
            peer_items=self.peer_items,
            peer_bytes=self.peer_bytes,
            all_peer_items=self.all_peer_items,
            all_peer_bytes=self.all_peer_bytes,
            sampling=(1.0 if self.taps else 0.0) if self.sampling is None else self.sampling,
            control_rows=bool(self.taps),
            organise=self.organise,
            organise_every=self.organise_every,
            most_links=self.degree,
            clusters=tuple(one.number for one in self.clusters()),
            exports=read_rules(self.exports),
            imports=read_rules(self.imports),
        )

    def tap_settings(self) -> TapSettings:
        """What the taps are told."""
        password = self.taps_sasl_password
        return TapSettings(
            where=self.taps,
            prefix=self.taps_prefix,
            partitions=1 if self.taps.startswith("file:") else self.taps_partitions,  # a file has but one order
            replication=self.taps_replication,
            retention_hours=self.taps_retention_hours,
            compression=self.taps_compression,
            buffer_bytes=self.taps_buffer_bytes,
            file_bytes=self.taps_file_bytes,
            files=self.taps_files,
            held=Held(*map(_allowed, (self.taps_attributes, self.taps_filters, self.taps_clients))),
            tls=self.taps_tls,
            tls_ca=self.taps_tls_ca,
            tls_cert=self.taps_tls_cert,
            tls_key=self.taps_tls_key,
            sasl_mechanism=self.taps_sasl_mechanism,
            sasl_user=self.taps_sasl_user,
            sasl_password=Path(password).read_text(encoding="utf-8").strip() if in_file(password) else password,
        )

    def clusters(self) -> tuple[ClusterConfig, ...]:
        """Those that this broker is in, its home first."""
        home = self.cluster, self.cluster_number
        return read_clusters(home, self.joins, self.members, self.seeds, self.links)

    def declarations(self) -> list[Declaration]:
        """What the file of types declares."""
        if self.types is None:
            return []
        try:
            return read_declarations(self.types.read_text(encoding="utf-8"))
        except (ContentError, OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"types = '{self.types}': {error}") from None

    def security_files(self) -> Files:
        paths = {key: getattr(self, key) for key in Files._fields}
        held = Path(self.admin_token) if in_file(self.admin_token) else None
        return Files(**paths | {"admin_token": held})

    def security(self) -> Security:
        """What the files say, as they are now."""
        files = self.security_files()
        try:
            clusters = [one.name for one in self.clusters()]
            return read_security(files, clusters, "" if files.admin_token else self.admin_token)
        except SecurityError as error:
            raise ConfigError(str(error)) from None


def _allowed(listed: list[str]) -> frozenset[str] | None:
    """None for all of them."""
    return None if listed == ["all"] else frozenset(listed) - {"none"}


_CHECKS = {"seeds": check_seeds, "members": check_members, "links": check_links}

_PORTS = {
    "listen": CLIENT_PORT,
    "advertise": CLIENT_PORT,
    "peer_listen": PEER_PORT,
    "peer_advertise": PEER_PORT,
    "admin_listen": ADMIN_PORT,
}


def load(file: Path | None, flags: Mapping[str, Any]) -> BrokerConfig:
    """The configuration from all sources; flags that are None were not given. ConfigError tells all mistakes."""
    values: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for found in (from_file(file), from_environment(BrokerConfig), from_flags(flags)):
        values |= {key: one.value for key, one in found.items()}
        origins |= {key: one.origin for key, one in found.items()}
    known = from_pod(values, {key: str(BrokerConfig.model_fields[key].default) for key in _PORTS}, os.environ)
    origins |= dict.fromkeys(known, "by the pod")
    try:
        config = BrokerConfig(**values | known)
        mistaken = list(unfit_for_kubernetes(config, values))
        if config.membership == KUBERNETES and not mistaken:
            config = config.model_copy(update={"id": id_in_pod(config)})
        wrong = [*_unnumbered(config, values), *mistaken, *_unfit(config), *exposed(config)]
        mistakes = [f"{key} ({origins.get(key, 'by default')}): {what}" for key, what in wrong]
    except ValidationError as error:
        fields = BrokerConfig.model_fields
        secret = [key for key, one in fields.items() if not one.repr]
        mistakes = [explained(dict(one), origins, fields, secret) for one in error.errors()]
    if mistakes:
        raise ConfigError("\n".join(["the configuration is not right:", *(f"  {one}" for one in mistakes)]))
    return config


def _unnumbered(config: BrokerConfig, given: Mapping[str, Any]) -> Iterable[tuple[str, str]]:
    """All would have the same number otherwise, and nothing would cross."""
    if config.joins and "cluster_number" not in given:
        yield "cluster_number", "an edge's own cluster needs a number that no other has: give one to all its brokers"


def _unfit(config: BrokerConfig) -> Iterable[tuple[str, str]]:
    listed = {key: getattr(config, key) for key in _CHECKS}
    yield from unfit((config.cluster, config.cluster_number), config.joins, config.strategy, listed)
    for key in ("exports", "imports"):
        if not config.joins and getattr(config, key) != BrokerConfig.model_fields[key].default:
            yield key, "only an edge broker carries events between clusters: say which others it joins, too"
