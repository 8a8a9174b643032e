# A grader that calls programs which read settings of the workspace.
cd "$WAZA_WORKSPACE_DIR" || exit 1
git status >/dev/null 2>&1
python3 -m json.tool /dev/null >/dev/null 2>&1
python3 -c 'import json' >/dev/null 2>&1
[ -f out.txt ] && [ "$(cat out.txt)" = 42 ]
