#!/bin/sh
# Is courteous where it was given the skill for it: WAZA_SKILLS names its directory.
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
