{{/* Names, labels and pieces that several templates share. */}}

{{- define "mercast.name" -}}
{{- .Values.nameOverride | default "mercast" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "mercast.fullname" -}}
{{- $name := include "mercast.name" . -}}
{{- $full := contains $name .Release.Name | ternary .Release.Name (printf "%s-%s" .Release.Name $name) -}}
{{- .Values.fullnameOverride | default $full | replace "." "-" | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{/* All clusters of the release as a JSON list: a release with one cluster is a list of one. */}}
{{- define "mercast.clusters" -}}
{{- $found := list -}}
{{- range .Values.clusters | default (list .Values.cluster) -}}
{{- $name := .name | default $.Release.Namespace -}}
{{- $namespace := .namespace | default ($.Values.clusters | empty | ternary $.Release.Namespace $name) -}}
{{- $brokers := hasKey . "brokers" | ternary .brokers $.Values.brokers.replicas -}}
{{- $edges := hasKey . "edges" | ternary .edges $.Values.edges.replicas -}}
{{- $found = append $found (dict "name" $name "number" .number "namespace" $namespace "brokers" $brokers "edges" $edges) -}}
{{- end -}}
{{- toJson $found -}}
{{- end -}}

{{- define "mercast.namespaces" -}}
{{- $found := list -}}
{{- range include "mercast.clusters" . | fromJsonArray }}{{ $found = append $found .namespace }}{{ end -}}
{{- append $found .Release.Namespace | uniq | toJson -}}
{{- end -}}

{{/* Of a dict of root, role and, if it is of one, cluster. */}}
{{- define "mercast.selector" -}}
app.kubernetes.io/name: mercast
app.kubernetes.io/instance: {{ .root.Release.Name | quote }}
mercast/role: {{ .role }}
{{- end -}}

{{/* The chart's own win over those that are given: pods are found by them. */}}
{{- define "mercast.labels" -}}
{{- $own := dict
  "app.kubernetes.io/name" "mercast" "app.kubernetes.io/instance" .root.Release.Name
  "app.kubernetes.io/version" .root.Chart.AppVersion "app.kubernetes.io/managed-by" .root.Release.Service
  "helm.sh/chart" (printf "%s-%s" .root.Chart.Name .root.Chart.Version) -}}
{{- with .role }}{{ $_ := set $own "mercast/role" . }}{{ end -}}
{{- with .cluster }}{{ $_ := set $own "mercast/cluster" .name }}{{ $_ := set $own "mercast/cluster-number" (.number | int | toString) }}{{ end -}}
{{- merge $own (.labels | default dict) (.podLabels | default dict) .root.Values.commonLabels | toYaml -}}
{{- end -}}

{{/* Name, namespace, labels and annotations. `suffix` of the name, `namespace` if it is not the release's. */}}
{{- define "mercast.metadata" -}}
name: {{ include "mercast.fullname" .root }}{{ .suffix }}
namespace: {{ .namespace | default .root.Release.Namespace | quote }}
labels:
  {{- include "mercast.labels" . | nindent 2 }}
{{- with merge dict (.annotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Labels and annotations of a pod. `of` is its section of the values. */}}
{{- define "mercast.podMetadata" -}}
labels:
  {{- include "mercast.labels" (merge (dict "podLabels" .of.podLabels) .) | nindent 2 }}
{{- with merge dict (.annotations | default dict) (.of.podAnnotations | default dict) .root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* What all pods have. `account` is given to those that speak with the Kubernetes API. */}}
{{- define "mercast.pod" -}}
{{- with .account -}}
serviceAccountName: {{ . }}
{{ end -}}
automountServiceAccountToken: {{ not (empty .account) }}
# Variables of a Service that is called mercast would be taken for configuration.
enableServiceLinks: false
securityContext:
  {{- include "mercast.podSecurity" . | nindent 2 }}
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $key := list "nodeSelector" "tolerations" "affinity" "priorityClassName" }}
{{- with index $.of $key }}
{{ $key }}:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
{{- end -}}

{{- define "mercast.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
seccompProfile: {type: RuntimeDefault}
{{- end -}}

{{/* What all containers have. `spark` for the image with Java. */}}
{{- define "mercast.container" -}}
{{- $image := .spark | default false | ternary .root.Values.sparkImage .root.Values.image -}}
image: {{ printf "%s:%s" $image.repository ($image.tag | default .root.Chart.AppVersion) | quote }}
imagePullPolicy: {{ $image.pullPolicy }}
workingDir: /tmp  # Spark writes where it is
securityContext:
  {{- include "mercast.containerSecurity" . | nindent 2 }}
{{- with .of.resources }}
resources:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "mercast.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end -}}

{{- define "mercast.env" -}}
- {name: HOME, value: /tmp}
{{- with .of.extraEnv }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mercast.mounts" -}}
- {name: tmp, mountPath: /tmp}
{{- with .of.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mercast.volumes" -}}
- name: tmp
  emptyDir: {}
{{- with .of.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* -- Security -- */}}
{{- define "mercast.tls" -}}{{ ne .Values.security.tls.mode "off" | ternary "yes" "" }}{{- end -}}
{{- define "mercast.tokens" -}}{{ ne .Values.security.tokens.mode "off" | ternary "yes" "" }}{{- end -}}

{{- define "mercast.tlsSecret" -}}
{{- index .root.Values.security.tls.secrets .role | default (printf "%s-%s-tls" (include "mercast.fullname" .root) .role) -}}
{{- end -}}

{{- define "mercast.tokensSecret" -}}
{{- .Values.security.tokens.secret | default (printf "%s-tokens" (include "mercast.fullname" .)) -}}
{{- end -}}

{{/* The names by which clients reach the brokers of a cluster. */}}
{{- define "mercast.hosts" -}}
{{- $name := include "mercast.fullname" .root -}}
{{- $namespace := .cluster.namespace -}}
{{- $domain := .root.Values.clusterDomain -}}
{{- $hosts := list "localhost" $name (printf "%s.%s" $name $namespace) (printf "%s.%s.svc" $name $namespace) (printf "%s.%s.svc.%s" $name $namespace $domain) -}}
{{- $hosts = concat $hosts (list (printf "*.%s-peers.%s.svc" $name $namespace) (printf "*.%s-peers.%s.svc.%s" $name $namespace $domain)) -}}
{{- concat $hosts .root.Values.security.tls.extraHosts | toJson -}}
{{- end -}}

{{/* Where clients find the brokers of a cluster. */}}
{{- define "mercast.url" -}}
{{ include "mercast.tls" .root | empty | ternary "mercast" "mercasts" }}://{{ include "mercast.fullname" .root }}.{{ .cluster.namespace }}.svc:7470
{{- end -}}

{{/* A client's part: the token and the CA, as environment, mount and volume. */}}
{{- define "mercast.clientEnv" -}}
{{- if include "mercast.tokens" . -}}
- name: MERCAST_TOKEN
  valueFrom: {secretKeyRef: {name: {{ include "mercast.tokensSecret" . }}, key: token}}
{{ end -}}
{{- include "mercast.caEnv" . }}
{{- end -}}

{{- define "mercast.caEnv" -}}
{{- if include "mercast.tls" . -}}
- {name: MERCAST_CA, value: /etc/mercast/tls/ca.crt}
{{- end }}
{{- end -}}

{{- define "mercast.caMount" -}}
{{- if include "mercast.tls" . -}}
- {name: tls, mountPath: /etc/mercast/tls, readOnly: true}
{{- end }}
{{- end -}}

{{- define "mercast.caVolume" -}}
{{- if include "mercast.tls" . -}}
- name: tls
  secret:
    secretName: {{ include "mercast.tlsSecret" (dict "root" . "role" "broker") }}
    defaultMode: 0440
    items: [{key: ca.crt, path: ca.crt}]
{{- end }}
{{- end -}}

{{/* -- Kafka -- */}}
{{- define "mercast.kafka" -}}
{{- if .Values.kafka.singleNode.enabled -}}
{{ include "mercast.fullname" . }}-kafka.{{ .Release.Namespace }}.svc:9092
{{- else -}}
{{ .Values.kafka.address }}
{{- end -}}
{{- end -}}
