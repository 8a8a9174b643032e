case $WAZA_TASK_ID/$WAZA_TRIAL in
passes/* | fails/2) echo yes ;;
fails/*) echo no ;;
errs/*) echo "the agent is broken" >&2; exit 70 ;;
times_out/*) exec sleep 1000 ;;
esac
