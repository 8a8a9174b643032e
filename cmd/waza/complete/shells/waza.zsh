#compdef waza
# Completion of waza for zsh. If waza has no candidates, zsh completes files.
_waza() {
	local -a offers
	offers=("${(@f)$(waza complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
	if [[ -n "${offers[1]}" ]]; then
		[[ "${words[CURRENT]}" == -*=* ]] && compset -P '*='
		compadd -- "${offers[@]}"
	else
		[[ "${words[CURRENT]}" == -*=* ]] && compset -P '*='
		_files
	fi
}
if [[ "${funcstack[1]}" == _waza ]]; then
	_waza "$@"
else
	compdef _waza waza
fi
