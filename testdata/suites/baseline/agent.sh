#!/bin/sh
# Is courteous if it has the skill for it. WAZA_SKILLS contains the skill's directory.
prompt=$(cat)
please=
if [ -n "$WAZA_SKILLS" ]; then
	echo '{"type":"skill","name":"courtesy"}' >&3
	please="Please, "
fi
case $prompt in
Ask*) echo "${please}the salt." ;;
Add*) echo "${please}take 42." ;;
*) echo "${please}yes" ;;
esac
