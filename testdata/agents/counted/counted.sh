#!/bin/sh
# Writes a line for each start, then executes the agent.
echo "$1" >>"$WAZA_TEST_STARTS"
exec "$@"
