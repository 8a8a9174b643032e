# Completion of waza for fish. If waza has no candidates, fish completes files.
function __waza_offers
	set -l words (commandline -opc)
	set -l word (commandline -ct)
	set -l offers (waza complete -- $words[2..-1] "$word" 2>/dev/null)
	if test (count $offers) -eq 0
		__fish_complete_path "$word"
		return
	end
	# For --flag=value, candidates include the flag.
	set -l flag (string match -r -- '^-[^=]*=' "$word")
	printf '%s\n' "$flag"$offers
end
complete -c waza -f -a '(__waza_offers)'
