# Completion of waza for bash. If waza has no candidates, bash completes files.
_waza() {
	local IFS=$'\n'
	COMPREPLY=($(waza complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o bashdefault -o default -F _waza waza
