{{/* The pod, of the StatefulSet of one and of the cluster's Deployment alike. */}}
{{- define "spool.pod" -}}
metadata:
  labels: {{- include "spool.labels" . | nindent 4 }}
  annotations:
    checksum/config: {{ include "spool.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}{{ toYaml . | nindent 4 }}{{ end }}
spec:
  serviceAccountName: {{ include "spool.fullname" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false # SPOOL_… variables are the service's settings
  terminationGracePeriodSeconds: {{ add .Values.graceSeconds .Values.marginSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets: {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    runAsNonRoot: true
    runAsUser: 65532
    runAsGroup: 65532
    fsGroup: 65532
    fsGroupChangePolicy: OnRootMismatch
    seccompProfile: {type: RuntimeDefault}
  containers:
    - name: spool
      image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve]
      env:
        - {name: SPOOL_CONFIG, value: /etc/spool/config.yaml}
        - {name: SPOOL_LISTEN, value: ":{{ .Values.service.port }}"}
        - {name: SPOOL_ADMIN_LISTEN, value: ":{{ .Values.admin.port }}"}
        {{- if .Values.cluster.enabled }}
        {{- include "spool.store" . | nindent 8 }}
        {{- else }}
        - {name: SPOOL_DATA, value: /data/log} # a folder of its own: the volume's root is not ours to close to others
        {{- end }}
        - {name: SPOOL_GRACE, value: "{{ .Values.graceSeconds }}s"}
      ports:
        - {name: http, containerPort: {{ .Values.service.port }}}
        - {name: admin, containerPort: {{ .Values.admin.port }}}
      # On the admin listener: it never speaks TLS, and asks for no key here.
      startupProbe: # migrations and recovery run before the first answer
        httpGet: {path: /healthz, port: admin}
        periodSeconds: 2
        failureThreshold: 150
      readinessProbe:
        httpGet: {path: /readyz, port: admin}
        periodSeconds: 5
        timeoutSeconds: 3
      livenessProbe: # the process alone: a full disk is no reason to cut live runs
        httpGet: {path: /healthz, port: admin}
        periodSeconds: 20
        timeoutSeconds: 5
        failureThreshold: 6
      resources: {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities: {drop: [ALL]}
      volumeMounts:
        {{- if not .Values.cluster.enabled }}
        - {name: data, mountPath: /data}
        {{- end }}
        {{- if .Values.cluster.credentialsSecret }}
        - {name: nats, mountPath: /etc/nats, readOnly: true}
        {{- end }}
        - {name: config, mountPath: /etc/spool, readOnly: true}
  volumes:
    - name: config
      secret:
        secretName: {{ include "spool.secret" . }}
        defaultMode: 0440
    {{- with .Values.cluster.credentialsSecret }}
    - name: nats
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations: {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity: {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{/* How a node reaches the servers of the cluster. */}}
{{- define "spool.store" -}}
- {name: SPOOL_STORE, value: {{ required "cluster.store: the NATS servers, like nats://nats-0.nats:4222,…" .Values.cluster.store | quote }}}
- {name: SPOOL_STORE_NAME, value: {{ .Values.cluster.name | quote }}}
{{- with .Values.cluster.monitors }}
- {name: SPOOL_STORE_MONITOR, value: {{ join "," . | quote }}}
{{- end }}
{{- if .Values.cluster.credentialsSecret }}
- {name: SPOOL_STORE_CREDENTIALS, value: /etc/nats/nats.creds}
{{- end }}
{{- end -}}
