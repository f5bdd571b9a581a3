{{- define "railmate.labels" -}}
app.kubernetes.io/name: {{ .Values.name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
{{- end }}

{{- define "railmate.namespace" -}}
{{ .Values.namespaceOverride | default .Release.Namespace }}
{{- end }}

{{- define "railmate.serviceAccount" -}}
{{ .Values.serviceAccount.name | default .Values.name }}
{{- end }}

{{- define "railmate.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag | default $.Chart.AppVersion }}
{{- end }}
{{- end }}
{{- end }}

{{/* Whether a pool may bind late. */}}
{{- define "railmate.late" -}}
{{- $late := ne .Values.binding "early" -}}
{{- range concat (list .Values.pools) (values .Values.poolsByLabel) -}}
{{- range . -}}
{{- $late = or $late (has (dig "railmate" "binding" "early" .) (list "late" "auto")) -}}
{{- end -}}
{{- end -}}
{{- if $late }}true{{ end -}}
{{- end }}

{{/* Whether a node may be served by DRA. */}}
{{- define "railmate.dra" -}}
{{- if or .Values.dra.byLabel (ne .Values.serve "plugin") }}true{{ end -}}
{{- end }}

{{/* The resources that have a DeviceClass. */}}
{{- define "railmate.resources" -}}
{{- $found := .Values.dra.resources -}}
{{- if not $found -}}
{{- range concat (list .Values.pools) (values .Values.poolsByLabel) -}}
{{- range . -}}
{{- $found = append $found (printf "%s/%s" (.resourcePrefix | default $.Values.resourcePrefix | default "intel.com") .resourceName) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $found | default (list "rdma/vf") | uniq | sortAlpha | join " " -}}
{{- end }}

{{- define "railmate.selinux" -}}
{{ .Values.seLinuxType | default (.Values.openshift.enabled | ternary "spc_t" "") }}
{{- end }}

{{/* A file of these pools, with the binding that they do not say themselves. */}}
{{- define "railmate.config" -}}
{{- $pools := list -}}
{{- range .pools -}}
{{- $pool := deepCopy . -}}
{{- if ne $.binding "early" -}}
{{- $_ := set $pool "railmate" (merge (get $pool "railmate" | default dict) (dict "binding" $.binding)) -}}
{{- end -}}
{{- $pools = append $pools $pool -}}
{{- end -}}
{{- dict "resourceList" $pools | toPrettyJson -}}
{{- end }}

{{/* Whether the release has a ConfigMap. */}}
{{- define "railmate.ownConfig" -}}
{{- with .Values -}}
{{- if or .pools .poolsByLabel .sharedPools .configFiles }}true{{ end -}}
{{- end -}}
{{- end }}

{{- define "railmate.files" -}}
{{- $files := deepCopy .Values.configFiles -}}
{{- if .Values.pools -}}
{{- $_ := set $files "config.json" (include "railmate.config" (pick .Values "pools" "binding")) -}}
{{- end -}}
{{- range $kind, $pools := .Values.poolsByLabel -}}
{{- $_ := set $files (printf "%s.json" $kind) (include "railmate.config" (dict "pools" $pools "binding" $.Values.binding)) -}}
{{- end -}}
{{- with .Values.sharedPools -}}
{{- $_ := set $files "shared.json" (dict "configList" . | toPrettyJson) -}}
{{- end -}}
{{- toYaml $files -}}
{{- end }}

{{/* Terms of a required nodeAffinity: one of NFD's labels, and neither the label of the systemd unit nor, for the others, of a kind or of DRA. */}}
{{- define "railmate.terms" -}}
{{- $labels := list "" -}}
{{- if .Values.nfd.enabled -}}
{{- $labels = list "network-sriov.capable" "rdma.capable" "rdma.available" -}}
{{- end -}}
{{- range $labels }}
- matchExpressions:
  {{- with . }}
  - {key: feature.node.kubernetes.io/{{ . }}, operator: In, values: ["true"]}
  {{- end }}
  {{- with $.Values.systemdLabel }}
  - {key: {{ . | quote }}, operator: DoesNotExist}
  {{- end }}
  {{- if and $.Values.dra.byLabel (not $.serve) }}
  - {key: railmate.io/serve, operator: NotIn, values: [dra]}
  {{- end }}
  {{- if and $.Values.poolsByLabel (not $.kind) }}
  - {key: railmate.io/config, operator: NotIn, values: {{ keys $.Values.poolsByLabel | sortAlpha | toJson }}}
  {{- end }}
{{- end }}
{{- end }}

{{- define "railmate.security" -}}
runAsUser: 0
runAsGroup: 0
privileged: false
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{/* The name of a runtime's volume: /run/containerd is containerd, /run/k3s/containerd k3s-containerd. */}}
{{- define "railmate.volume" -}}
{{ . | trimPrefix "/var" | trimPrefix "/run/" | trimPrefix "/" | replace "/" "-" | trunc -63 | trimPrefix "-" }}
{{- end }}

{{- define "railmate.demo" -}}
backoffLimit: 0
template:
  spec:
    restartPolicy: Never
    automountServiceAccountToken: false
    {{- with .Values.image.pullSecrets }}
    imagePullSecrets:
    {{- range . }}
    - name: {{ . }}
    {{- end }}
    {{- end }}
    nodeSelector:
      kubernetes.io/os: linux
    securityContext:
      runAsNonRoot: true
      runAsUser: 65532
      runAsGroup: 65532
      fsGroup: 65532
      seccompProfile:
        type: RuntimeDefault
    containers:
    - name: demo
      image: {{ .Values.demo.image | default (printf "%s-demo:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion)) }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [--machine, hgx-h100]
      securityContext:
        allowPrivilegeEscalation: false
        readOnlyRootFilesystem: true
        capabilities:
          drop: [ALL]
      resources:
        requests: {cpu: 100m, memory: 128Mi}
        limits: {memory: 256Mi}
      volumeMounts:
      - {name: tmp, mountPath: /tmp}
    volumes:
    - name: tmp
      emptyDir: {medium: Memory, sizeLimit: 128Mi}
{{- end }}

{{/* With a hash of its spec: a Job cannot be changed, so another image is another Job. */}}
{{- define "railmate.demo.name" -}}
{{ .Values.name }}-demo-{{ include "railmate.demo" . | sha256sum | trunc 7 }}
{{- end }}
