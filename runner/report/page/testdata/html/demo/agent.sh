# The agent of the demo. It reads the prompt and does what the task tests.
prompt=$(cat)
say() { printf '%s\n' "$1" >&3; }
tokens() { say "{\"type\":\"usage\",\"input_tokens\":$1,\"output_tokens\":$2,\"cost_usd\":0.00$3}"; }
[ -n "$WAZA_SKILLS" ] && case "$prompt" in *pizza*|*slow*) ;; *) say '{"type":"skill","name":"explainer"}' ;; esac

case "$prompt" in
*"broken connection"*)
	[ $((WAZA_TRIAL % 4)) = 1 ] && { echo 'connection refused: the model server is not running' >&2; exit 7; }
	tokens 300 40 4; echo 'The connection is retried three times, with a pause in between.' ;;
*"no server"*)
	echo 'connection refused: the model server is not running' >&2; exit 7 ;;
*"forever"*)
	say '{"type":"message","role":"assistant","text":"Let me think about this for a while."}'; sleep 30 ;;
*"Repair"*)
	say '{"type":"message","role":"assistant","text":"I will look at the file first."}'
	say '{"type":"tool_call","name":"read_file","arguments":{"path":"sort.py"},"result":"def sort(values):\n    \"\"\"Sorts a list in place.\"\"\"\n    ..."}'
	sed -i 's/len(values) - 1)/len(values) - 1 - i)/; s/    return values/    return values  # sorted/' sort.py
	rm -f NOTES.md
	mkdir -p build
	printf '# Changes\n\nThe inner loop stops earlier because the rest is already in order.\n' > CHANGES.md
	printf '\000\001\002' > build/cache.bin
	[ $((WAZA_TRIAL % 3)) = 0 ] || printf 'speed = fast\nretries = 5\n' > settings.ini
	say '{"type":"tool_call","name":"bash","title":"Run the tests","arguments":{"command":"python3 -m pytest -q && git diff --stat","timeout":30,"env":{"CI":"1","LEVEL":2},"quiet":true},"result":{"exit_code":0,"stdout":"3 passed in 0.02s","stderr":""}}'
	tokens $((1400 + WAZA_TRIAL * 37)) $((320 + WAZA_TRIAL * 11)) $((2 + WAZA_TRIAL % 3))
	printf 'I stopped the inner loop where the rest is in order.\n\n```python\nfor j in range(len(values) - 1 - i):\n    ...\n```\n\nAnd I set `speed` to fast.\n' ;;
*"complexity"*)
	tokens $((800 + WAZA_TRIAL * 13)) $((200 + (WAZA_TRIAL * 7919) % 90)) 2
	if [ -n "$WAZA_SKILLS" ] && [ $((WAZA_TRIAL % 5)) != 0 ]; then
		echo 'It is quadratic: for each element all others are looked at, O(n^2).'
	else
		echo 'I am sorry, I do not know how long that takes.'
	fi ;;
*"long story"*)
	say '{"type":"message","role":"assistant","text":"I will think aloud."}'
	i=0
	while [ $i -lt 40 ]; do
		i=$((i + 1))
		say "{\"type\":\"tool_call\",\"name\":\"search\",\"arguments\":{\"query\":\"sorting $i\",\"limit\":$i},\"result\":{\"hits\":[{\"id\":$i,\"title\":\"Sorting, part $i\"}],\"more\":false}}"
	done
	tokens 22000 1800 61
	i=0
	while [ $i -lt 60 ]; do i=$((i + 1)); echo "$i. Once, there was a list that wanted to be in order."; done ;;
*"what sort.py does"*)
	tokens $((500 + WAZA_TRIAL * 5)) 120 1
	# The old model had no answer every third time.
	[ "$WAZA_MODEL" = demo-0 ] && [ $((WAZA_TRIAL % 3)) = 0 ] && { echo 'It is a program.'; exit 0; }
	echo 'It sorts a list: it swaps neighbours in the wrong order until all are in order.' ;;
*)
	tokens $((500 + WAZA_TRIAL * 5)) 120 1
	echo 'It sorts a list: it swaps neighbours in the wrong order until all are in order.' ;;
esac
