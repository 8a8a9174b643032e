package program

// The usual test.sh of the Terminal-Bench family installs curl with apt, uv with curl, and pytest with
// uv. In a sandbox without root and perhaps without network, that fails, and the script writes the
// reward 0. So programs of ours replace those that are missing: they use the pytest of the
// machine, or name the missing program in $WAZA_LACKING, which makes the trial an error.

// prelude starts a verifier. Its arguments are the folder where it starts, and what it needs.
const prelude = `cd "$1" || { echo "the folder $1 does not exist in the sandbox" >"$WAZA_LACKING"; exit 1; }
: >"$WAZA_STARTED"
shift
for need; do
	case $need in
	module:*) python3 -I -c "import ${need#module:}" 2>/dev/null || lacking="the module ${need#module:} of python3 is not installed; install it on this machine";;
	*) command -v "$need" >/dev/null || lacking="the program $need is not installed";;
	esac
done
if [ -n "$lacking" ]; then
	echo "$lacking" >"$WAZA_LACKING"
	exit 1
fi
mkdir -p "$HOME/.local/bin" 2>/dev/null
[ -e "$HOME/.local/bin/env" ] || : 2>/dev/null >"$HOME/.local/bin/env"
mkdir -p /tmp/.stand-ins && ln -s "$WAZA_STAND_INS/apt-get" /tmp/.stand-ins/apt-get && ln -s "$WAZA_STAND_INS/apt-get" /tmp/.stand-ins/apt
PATH=/tmp/.stand-ins:$PATH
`

// startTests starts a verifier after a prelude.
const startTests = "exec /tests/test.sh\n"

// containerProbe is the prelude in a container, where the programs of its image and real ones that the verifier
// installs are right. It shows that the shell works.
const containerProbe = `cd "$1" || { echo "the folder $1 does not exist in the container" >"$WAZA_LACKING"; exit 1; }
: >"$WAZA_STARTED"
`

// probe shows that a shell works in the folder where a verifier starts.
const probe = `[ -z "$1" ] || cd "$1" || exit 1
: >"$WAZA_STARTED"
`

// standIns are programs at the end of PATH, except apt-get, which is at its start.
var standIns = map[string]string{
	"apt-get": `#!/bin/sh
# Packages cannot be installed here. A package counts as installed if the machine has its program.
[ "$1" = update ] && exit 0
for arg; do
	case $arg in
	-*|install|update|upgrade|clean|autoremove) ;;
	curl|uv|ca-certificates|python3-pip|python3-venv|build-essential|procps) ;;
	*) name=${arg%%=*}; name=${name%%:*}
	   command -v "$name" >/dev/null || { echo "the package $name is not installed, and cannot be installed in the sandbox" >"$WAZA_LACKING"; exit 100; };;
	esac
done
`,
	"curl": `#!/bin/sh
# Without curl, only the installer of uv has a replacement.
case "$*" in
*astral.sh/uv*) exit 0;;
esac
echo "the program curl is not installed" >"$WAZA_LACKING"
exit 127
`,
	"pytest": `#!/bin/sh
python3 -I -c "import pytest" 2>/dev/null || { echo "pytest is not installed; install it for the python3 of this machine" >"$WAZA_LACKING"; exit 127; }
if python3 -I -c "import pytest_jsonctrf" 2>/dev/null; then
	exec python3 -m pytest "$@"
fi
count=$#
while [ "$count" -gt 0 ]; do # without --ctrf FILE, which a plugin adds
	arg=$1; shift; count=$((count-1))
	case $arg in
	--ctrf) [ "$count" -gt 0 ] && { shift; count=$((count-1)); };;
	--ctrf=*) ;;
	*) set -- "$@" "$arg";;
	esac
done
exec python3 -m pytest "$@"
`,
	"uvx": `#!/bin/sh
# Options of uvx come before the program.
while [ $# -gt 0 ]; do
	case $1 in
	-p|--python|--from|--index-url|--index) shift 2;;
	-w|--with)
		name=$(printf %s "$2" | sed 's/[^A-Za-z0-9_-].*//; s/-/_/g')
		case $name in
		pytest|pytest_json_ctrf) ;;
		*) python3 -I -c "import $name" 2>/dev/null || { echo "the module $name of python3 is not installed; install it on this machine" >"$WAZA_LACKING"; exit 127; };;
		esac
		shift 2;;
	-*) shift;;
	*) break;;
	esac
done
program=${1%%@*}; program=${program%%=*}; [ $# -gt 0 ] && shift
case $program in
pytest) exec "$WAZA_STAND_INS/pytest" "$@";;
esac
command -v "$program" >/dev/null && exec "$program" "$@"
echo "uv is not installed, and this machine has no replacement for the tool $program" >"$WAZA_LACKING"
exit 127
`,
	"uv": `#!/bin/sh
case $1 in
init|venv|add|sync|python) exit 0;; # uv run checks for the modules
pip) exit 0;;
tool) [ "$2" = run ] && { shift 2; exec "$WAZA_STAND_INS/uvx" "$@"; };;
run) shift; exec "$WAZA_STAND_INS/uvx" "$@";;
esac
echo "uv is not installed" >"$WAZA_LACKING"
exit 127
`,
}
