# Made by hack/completion from what railmated --help says.
_railmated() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words
	COMPREPLY=()
	case $prev in
	--config-file|--control-socket|--gpu-plugin-socket|--nfd-file|--ready-file|--runtime-socket|--shared-config|--topology-hints) mapfile -t COMPREPLY < <(compgen -f -- "$cur") && return ;;
	--cdi-dir|--cgroup-dir|--devinfo-dir|--kubelet-dir|--kubelet-root|--netns-dir|--probe|--root|--run-dir|--service-account|--state-dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") && return ;;
	--cdi|--dra-driver|--empty-pool-event|--events|--log-format|--log-level|--metrics-address|--node-name|--pod-resources|--pod-resources-timeout|--pod-specs|--registration|--rescan|--resource-prefix|--serve) return ;;
	esac
	words='--config-file --shared-config --resource-prefix --check-config --strict-config --topology-hints --kubelet-dir --kubelet-root --serve --dra-driver --registration --pod-resources --pod-resources-timeout --pod-specs --gpu-plugin-socket --node-name --service-account --cgroup-dir --devinfo-dir --control-socket --run-dir --netns-dir --state-dir --probe --cdi-dir --cdi --runtime-socket --metrics-address --ready-file --events --node-condition --nfd-file --empty-pool-event --rescan --root --use-cdi --log-level --log-format --help --version'
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -o filenames -F _railmated railmated
