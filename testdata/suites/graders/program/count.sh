#!/bin/sh
# Counts the items of the output and scores their share of what is wanted.
want=$1
items=$(tr ',' '\n' <"$WAZA_OUTPUT_FILE" | grep -c '[a-z]')
if [ "$items" -ge "$want" ]; then
	echo '{"score": 1, "passed": true}'
else
	echo "{\"score\": 0.$((items * 10 / want)), \"passed\": false, \"feedback\": \"$items of $want items\"}"
fi
