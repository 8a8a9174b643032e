#!/bin/sh
# Uses its skill, if it has one, whenever a prompt asks for it. waza can end it after that.
prompt=$(cat)
case $prompt in
*length* | Ponder*) ;;
*) echo "Done." ;;
esac
case $prompt in
Explain*)
	[ -f "$WAZA_SKILLS/SKILL.md" ] && echo '{"type":"skill","name":"explainer"}' >&3
	;;
Break*)
	echo "something gave way" >&2
	exit 3
	;;
esac
case $prompt in
*length* | Ponder*) exec sleep 1000 ;;
esac
