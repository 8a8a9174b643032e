#!/bin/sh
# A simple agent. It reads the prompt from standard input, writes the answer to
# standard output, and reports its steps on file descriptor 3.
prompt=$(cat)

report() { printf '%s\n' "$1" >&3; }

case $prompt in
Greet*)
	echo "$GREETING, and welcome."
	;;
Count*)
	lines=$(grep -c '' notes.txt)
	report '{"type":"skill","name":"counting"}'
	report '{"type":"tool_call","name":"read","arguments":{"path":"notes.txt"},"result":"three words"}'
	report '{"type":"message","text":"Let me count."}'
	report '{"type":"usage","input_tokens":12,"output_tokens":8}'
	echo "There are $lines lines; I feel $AGENT_MOOD."
	;;
Keep*)
	word=${prompt##* }
	echo "${word%.}" >memory.txt
	echo "Kept."
	;;
Which*)
	echo "The word was $(cat memory.txt)."
	;;
Break*)
	echo "something gave way" >&2
	exit 3
	;;
*)
	echo "I cannot do that."
	;;
esac
