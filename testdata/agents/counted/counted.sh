#!/bin/sh
# Writes a line for each start, and becomes the agent.
echo "$1" >>"$WAZA_TEST_STARTS"
exec "$@"
