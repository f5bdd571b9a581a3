# Made by hack/completion from what railmatectl --help says.
_railmatectl() {
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]} words
	COMPREPLY=()
	case $prev in
	--config|--control-socket|--kubeconfig|--map|--output|--topology-hints|-o) mapfile -t COMPREPLY < <(compgen -f -- "$cur") && return ;;
	--root|--state-dir) mapfile -t COMPREPLY < <(compgen -d -- "$cur") && return ;;
	--container|--context|--fix-manifest|--free|--gpus|--load|--must|--namespace|--node|--only|--parallel|--pods|--pool|--railmate-namespace|--role|--seed|--selector|--timeout|--vfs|-c|-l|-n) return ;;
	esac
	if [ $COMP_CWORD = 1 ]; then
		words='topo plan explain release status simulate doctor verify probe cluster ready snapshot --help --version'
	else
		case ${COMP_WORDS[1]} in
		topo) words='--root --config --topology-hints --json --wide --svg --control-socket --state-dir --nccl-xml --rccl --help' ;;
		plan) words='--root --config --topology-hints --json --gpus --vfs --pool --free --must --help' ;;
		explain) words='pod claim vf last pool --control-socket --state-dir --json --help' ;;
		release) words='--control-socket --yes --help' ;;
		status) words='--root --topology-hints --control-socket --state-dir --no-doctor --json --help' ;;
		simulate) words='--root --config --topology-hints --json --pods --seed --load --pool --help' ;;
		doctor) words='--root --config --topology-hints --json --only --node-only --list --fix-manifest --role --help' ;;
		verify) words='--map --counters --root --json --help' ;;
		probe) words='--help' ;;
		cluster) words='status topo explain doctor verify probe --context --kubeconfig --railmate-namespace --namespace -n --selector -l --container -c --node --parallel --timeout --no-doctor --only --svg --nccl-xml --rccl --wide --json --help' ;;
		ready) words='--help' ;;
		snapshot) words='unpack --root --scrub --output -o --help' ;;
		esac
	fi
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}
complete -o default -o filenames -F _railmatectl railmatectl
