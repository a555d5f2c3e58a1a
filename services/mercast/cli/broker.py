"""`mercast broker`."""

import sys
from pathlib import Path
from typing import Any, Literal, NoReturn


def broker(
    *,
    config: Path | None = None,
    check_config: bool = False,
    id: int | None = None,
    cluster: str | None = None,
    cluster_number: int | None = None,
    strategy: str | None = None,
    listen: str | None = None,
    peer_listen: str | None = None,
    admin_listen: str | None = None,
    advertise: str | None = None,
    peer_advertise: str | None = None,
    tls_cert: Path | None = None,
    tls_key: Path | None = None,
    tls_client_ca: Path | None = None,
    peer_cert: Path | None = None,
    peer_key: Path | None = None,
    peer_ca: Path | None = None,
    tokens: Path | None = None,
    admin_cert: Path | None = None,
    admin_key: Path | None = None,
    admin_token: str | None = None,
    insecure: bool | None = None,
    membership: Literal["static", "kubernetes"] | None = None,
    ids_per_cluster: int | None = None,
    kubernetes_namespace: str | None = None,
    kubernetes_pod: str | None = None,
    kubernetes_labels: str | None = None,
    backbone_namespaces: str | None = None,
    members: str | None = None,
    seeds: str | None = None,
    links: str | None = None,
    joins: str | None = None,
    exports: str | None = None,
    imports: str | None = None,
    degree: int | None = None,
    organise: Literal["off", "carried", "paper"] | None = None,
    organise_every: float | None = None,
    heart_beat: float | None = None,
    misses: int | None = None,
    settle_within: float | None = None,
    purge_after: float | None = None,
    wait_for_route: float | None = None,
    rule: Literal["paper", "covering"] | None = None,
    repair: bool | None = None,
    covering: bool | None = None,
    matcher: Literal["index", "scan"] | None = None,
    types: Path | None = None,
    taps: str | None = None,
    sampling: float | None = None,
    taps_prefix: str | None = None,
    taps_partitions: int | None = None,
    taps_replication: int | None = None,
    taps_retention_hours: float | None = None,
    taps_compression: Literal["none", "gzip", "lz4"] | None = None,
    taps_buffer_bytes: str | None = None,
    taps_file_bytes: str | None = None,
    taps_files: int | None = None,
    taps_attributes: str | None = None,
    taps_filters: str | None = None,
    taps_clients: str | None = None,
    taps_tls: bool | None = None,
    taps_tls_ca: Path | None = None,
    taps_tls_cert: Path | None = None,
    taps_tls_key: Path | None = None,
    taps_sasl_mechanism: Literal["", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] | None = None,
    taps_sasl_user: str | None = None,
    taps_sasl_password: str | None = None,
    record: Path | None = None,
    keep_stimuli: int | None = None,
    keep_stimuli_bytes: str | None = None,
    log_format: Literal["console", "json", "auto"] | None = None,
    log_level: Literal["debug", "info", "warning", "error"] | None = None,
    publish_events_per_second: int | None = None,
    publish_bytes_per_second: str | None = None,
    client_queue_bytes: str | None = None,
    link_queue_bytes: str | None = None,
    handshake_seconds: float | None = None,
    drain_seconds: float | None = None,
    max_connection_seconds: float | None = None,
    max_clients: int | None = None,
    max_peers: int | None = None,
    peer_items: int | None = None,
    peer_bytes: str | None = None,
    all_peer_items: int | None = None,
    all_peer_bytes: str | None = None,
) -> None:
    """Run a broker, until SIGTERM or Ctrl-C.

    Every flag can also be given in a YAML file or in the environment, as docs/configuration.md says; later wins:
    defaults, file, environment, flags.

    Parameters
    ----------
    config
        A YAML file with the same keys as the flags.
    check_config
        Only say whether the configuration is right.
    id
        The number of this broker, which no other broker has.
    cluster
        The cluster of brokers that this one belongs to.
    cluster_number
        The number of that cluster, which no other cluster has.
    strategy
        How events find their way.
    listen
        Where clients connect.
    peer_listen
        Where other brokers connect.
    admin_listen
        Where liveness, readiness, metrics, overlay and tables are served over HTTP.
    advertise
        The address that clients are told.
    peer_advertise
        The address that other brokers are told.
    tls_cert
        The certificate that clients are shown; makes them use TLS.
    tls_key
        Its key.
    tls_client_ca
        The CA that clients must have a certificate of.
    peer_cert
        The certificate that other brokers are shown, naming cluster and role.
    peer_key
        Its key.
    peer_ca
        The CA that other brokers must have a certificate of.
    tokens
        A YAML file of tokens; clients need one of them.
    admin_cert
        The certificate that admin HTTP shows; makes it HTTPS.
    admin_key
        Its key.
    admin_token
        What admin HTTP asks for: a file that holds it (with a slash in its path), or the token itself.
    insecure
        Listen beyond this machine even without TLS and tokens.
    membership
        Who says which brokers are there: members and seeds alone, or the Kubernetes API too.
    ids_per_cluster
        Kubernetes: ids that each cluster has.
    kubernetes_namespace
        Kubernetes: the namespace of the broker's own pod.
    kubernetes_pod
        Kubernetes: the name of the broker's own pod.
    kubernetes_labels
        Kubernetes: selects the pods of the broker's own cluster.
    backbone_namespaces
        Kubernetes: namespaces in which an edge finds those of other clusters, with commas.
    members
        The brokers of the cluster, as id=host:port of their peer ports, with commas.
    seeds
        Peer addresses of brokers to join the cluster by, with commas.
    links
        The links of the overlay as id-id, with commas; by default they follow from the members.
    joins
        MERC: other clusters that this broker is in too, as name=number, with commas; it is an edge broker then.
    exports
        MERC: types of events that an edge carries out of its own cluster, with commas; not those after a !.
    imports
        MERC: the same for what it carries into its own cluster.
    degree
        Links that each broker has, an even number.
    organise
        Whether links move to where the traffic is, and by which rule.
    organise_every
        Seconds that messages are counted before a link moves.
    heart_beat
        Seconds between heart-beats.
    misses
        Heart-beats without a word before a neighbour counts as down.
    settle_within
        Seconds before a client is told who has not acknowledged its subscription.
    purge_after
        Seconds out of reach before what a broker said is forgotten.
    wait_for_route
        Seconds that an event waits for a route.
    rule
        How destination lists are split among equal paths.
    repair
        FBR: trees follow the shortest paths.
    covering
        FBR: covered subscriptions are not passed on.
    matcher
        How events are matched.
    types
        A YAML file of type declarations.
    taps
        Where rows about all that the broker does go: kafka://host:port or file:///folder.
    sampling
        Share of the events that the taps get rows of.
    taps_prefix
        What the names of the topics begin with.
    taps_partitions
        Partitions of the topic of taps.
    taps_replication
        Copies that Kafka keeps of each topic.
    taps_retention_hours
        Hours that Kafka keeps rows.
    taps_compression
        Whether messages to Kafka are compressed.
    taps_buffer_bytes
        What may wait to be shipped.
    taps_file_bytes
        The size at which a file of taps is full.
    taps_files
        Files that are kept for each topic.
    taps_attributes
        What the taps may hold of events: all attributes, none, or names with commas.
    taps_filters
        The filters that they may hold: all, none, or those for types with commas.
    taps_clients
        The client ids that they may hold: all, none, or ids with commas.
    taps_tls
        Speak to Kafka by TLS.
    taps_tls_ca
        The CA of Kafka's certificate.
    taps_tls_cert
        The certificate that Kafka is shown.
    taps_tls_key
        Its key.
    taps_sasl_mechanism
        How Kafka is told who this is.
    taps_sasl_user
        The user's name.
    taps_sasl_password
        The password: a file that holds it (with a slash in its path), or the password itself.
    record
        A file to write all stimuli to, for `mercast lab replay`.
    keep_stimuli
        Turns of which the stimuli are kept for `mercast doctor`; 0 for none.
    keep_stimuli_bytes
        The size of these stimuli.
    log_format
        Logs for people or as lines of JSON.
    log_level
        The least level that is logged.
    publish_events_per_second
        What one client may publish; 0 is no limit.
    publish_bytes_per_second
        The same in bytes.
    client_queue_bytes
        What may wait to be written to one client.
    link_queue_bytes
        What may wait to be written to one neighbour.
    handshake_seconds
        How long a new connection may take to say who it is.
    drain_seconds
        How long it may take to leave after SIGTERM: clients move, and what waits is sent.
    max_connection_seconds
        The age at which a client is told to go to another broker; 0 is any.
    max_clients
        Clients connected at a time.
    max_peers
        Connections that other brokers have made at a time.
    peer_items
        Advertisements and subscriptions that one other broker may have this one keep.
    peer_bytes
        The memory of these.
    all_peer_items
        Advertisements and subscriptions that all other brokers together may have this one keep.
    all_peer_bytes
        The memory of these.
    """
    flags = {name: value for name, value in locals().items() if name not in ("config", "check_config")}
    if not check_config:
        from mercast.broker.starting import expect_signals

        expect_signals()
    from mercast.broker.config import load
    from mercast.broker.config_sources import ConfigError

    try:
        read = load(config, flags)
        read.declarations()
        read.security()
    except ConfigError as error:
        _stop(str(error))
    if check_config:
        sys.stdout.write("the configuration is right\n")
        return
    _run(read, lambda: load(config, flags))


def _run(config: Any, reread: Any) -> None:
    from mercast.broker import main
    from mercast.broker.logs import set_up_logs

    set_up_logs(config)
    try:
        main.run(config, reread)
    except main.StartError as error:
        _stop(str(error))


def _stop(reason: str) -> NoReturn:
    sys.exit(f"mercast: {reason}")
