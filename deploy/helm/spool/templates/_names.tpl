{{- define "spool.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 40 | trimSuffix "-" -}}
{{- end -}}

{{- define "spool.fullname" -}}
{{- printf "%s-%s" .Release.Name (include "spool.name" .) | trunc 52 | trimSuffix "-" -}}
{{- end -}}

{{- define "spool.selector" -}}
app.kubernetes.io/name: {{ include "spool.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "spool.labels" -}}
{{ include "spool.selector" . }}
app.kubernetes.io/version: {{ .Values.image.tag | default .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{- define "spool.secret" -}}
{{- .Values.existingSecret | default (include "spool.fullname" .) -}}
{{- end -}}

{{/* The file of the service: config, and secretConfig over it. */}}
{{- define "spool.config" -}}
{{- $all := mergeOverwrite (deepCopy .Values.config) (deepCopy .Values.secretConfig) -}}
{{- $admin := $all.admin | default dict -}}
{{- if and .Values.cluster.enabled (not $all.secret) (not .Values.existingSecret) }}
{{- fail "secretConfig.secret: needed in a cluster, the same for all of its pods" }}
{{- end -}}
{{- if $admin.tls }}
{{- fail "config.admin.tls: the chart's probes and its ServiceMonitor speak plain HTTP" }}
{{- end -}}
{{- if not $admin.key }}{{ $_ := set $admin "open" true }}{{ end -}}
{{- toYaml (set $all "admin" $admin) -}}
{{- end -}}
