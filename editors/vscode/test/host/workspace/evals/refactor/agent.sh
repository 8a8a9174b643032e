# An agent that works until a test stops it: each trial except the first
# waits until the gate is open, which means that the file $WAZA_TEST_GATE exists.
# It gives up after a while, so that no process remains if the test fails.
prompt=$(cat)
printf '{"type":"message","role":"assistant","text":"Looking at the code."}\n' >&3
if [ "$WAZA_TASK_ID" != extract ] || [ "$WAZA_TRIAL" != 1 ]; then
	tries=0
	until [ -e "$WAZA_TEST_GATE" ]; do
		tries=$((tries + 1))
		[ "$tries" -lt 3000 ] || { echo 'the gate was never opened' >&2; exit 1; }
		sleep 0.1
	done
fi
printf '{"type":"tool_call","name":"edit","arguments":{"path":"sort.py"},"result":"ok"}\n' >&3
echo "$prompt Done."
