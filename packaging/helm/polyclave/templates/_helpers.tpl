{{- define "polyclave.labels" -}}
app.kubernetes.io/name: polyclave
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: {{ .Values.mode }}
{{- end }}

{{- define "polyclave.metadataLabels" -}}
{{ include "polyclave.labels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}

{{- define "polyclave.image" -}}
{{- with .Values.image -}}
{{ .repository }}{{ if .digest }}@{{ .digest }}{{ else }}:{{ .tag }}{{ end }}
{{- end -}}
{{- end }}

{{- /* No container can change its image, gain rights, or call the kernel for more than a program needs. */ -}}
{{- define "polyclave.locked" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities: { drop: [ALL] }
{{- end }}

{{- define "polyclave.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile: { type: RuntimeDefault }
{{- end }}

{{- define "polyclave.volumeClaim" -}}
- metadata: { name: state }
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .Values.storage.className }}
    storageClassName: {{ . | quote }}
    {{- end }}
    resources: { requests: { storage: {{ .Values.storage.size }} } }
{{- end }}

{{- define "polyclave.placement" -}}
{{- if .Values.nodeSelector -}}
nodeSelector:
  {{- toYaml .Values.nodeSelector | nindent 2 }}
{{ end -}}
{{- if .Values.tolerations -}}
tolerations:
  {{- toYaml .Values.tolerations | nindent 2 }}
{{- end -}}
{{- end }}
