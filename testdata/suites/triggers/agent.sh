#!/bin/sh
# Uses the skill whenever a prompt asks for an explanation.
if grep -qi explain; then
	echo '{"type":"skill","name":"explainer"}' >&3
	echo "The loop counts to ten."
else
	echo "I will think about it."
fi
