{{/* The configuration that all brokers of a role in a cluster share (docs/configuration.md). */}}
{{- define "mercast.brokerConfig" -}}
{{- $root := .root -}}
{{- $config := dict
  "membership" "kubernetes" "ids_per_cluster" $root.Values.idsPerCluster
  "cluster" .cluster.name "cluster_number" .cluster.number "strategy" $root.Values.strategy
  "listen" "0.0.0.0:7470" "peer_listen" "0.0.0.0:7471" "admin_listen" "0.0.0.0:7472" -}}
{{- if include "mercast.tls" $root -}}
{{- range list "tls" "peer" "admin" -}}
{{- $_ := set $config (printf "%s_cert" .) "/etc/mercast/tls/tls.crt" -}}
{{- $_ := set $config (printf "%s_key" .) "/etc/mercast/tls/tls.key" -}}
{{- end -}}
{{- $_ := set $config "peer_ca" "/etc/mercast/tls/ca.crt" -}}
{{- end -}}
{{- if include "mercast.tokens" $root -}}
{{- $_ := set $config "tokens" "/etc/mercast/tokens/tokens.yaml" -}}
{{- $_ := set $config "admin_token" "/etc/mercast/tokens/admin-token" -}}
{{- end -}}
{{- if not (and (include "mercast.tls" $root) (include "mercast.tokens" $root)) -}}
{{- $_ := set $config "insecure" true -}}
{{- end -}}
{{- with include "mercast.kafka" $root -}}
{{- $_ := set $config "taps" (printf "kafka://%s" .) -}}
{{- $_ := set $config "taps_prefix" $root.Values.kafka.prefix -}}
{{- end -}}
{{- if eq .role "edge" -}}
{{- $backbone := $root.Values.backbone -}}
{{- $_ := set $config "joins" (list (printf "%s=%d" $backbone.name (int $backbone.number))) -}}
{{- $seeds := list -}}
{{- range $backbone.seeds }}{{ $seeds = append $seeds (printf "%s/%s" $backbone.name .) }}{{ end -}}
{{- with $seeds }}{{ $_ := set $config "seeds" . }}{{ end -}}
{{- with include "mercast.backboneNamespaces" . | fromJsonArray }}{{ $_ := set $config "backbone_namespaces" . }}{{ end -}}
{{- with $root.Values.edges.exports }}{{ $_ := set $config "exports" . }}{{ end -}}
{{- with $root.Values.edges.imports }}{{ $_ := set $config "imports" . }}{{ end -}}
{{- end -}}
{{- merge $config $root.Values.config | toYaml -}}
{{- end -}}

{{/* Other namespaces in which edges are looked up: those of the release, and those that were given. */}}
{{- define "mercast.backboneNamespaces" -}}
{{- $found := list -}}
{{- range include "mercast.clusters" .root | fromJsonArray }}{{ $found = append $found .namespace }}{{ end -}}
{{- without (concat $found .root.Values.backbone.namespaces | uniq) .cluster.namespace | toJson -}}
{{- end -}}
