#!/bin/sh
# Counts the items of the output. The score is their share of the wanted number.
want=$1
items=$(tr ',' '\n' <"$WAZA_OUTPUT_FILE" | grep -c '[a-z]')
if [ "$items" -ge "$want" ]; then
	echo '{"score": 1, "passed": true}'
else
	echo "{\"score\": 0.$((items * 10 / want)), \"passed\": false, \"feedback\": \"$items of $want items\"}"
fi
