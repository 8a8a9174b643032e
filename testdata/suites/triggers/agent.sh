#!/bin/sh
# Uses the skill whenever a prompt asks for an explanation. waza can end it after that.
if grep -qi explain; then
	echo "The loop counts to ten."
	echo '{"type":"skill","name":"explainer"}' >&3
else
	echo "I will think about it."
fi
