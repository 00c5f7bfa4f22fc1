#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# beside: yes
# time-limit: 120
#
# The examples of flyrecctl(1) and org.flyrec.Recorder1(5) work, in their order, on a daemon with a
# session "sched" and one "irq"; each verb and option is in --help, the manual page and the completion.
. "$(dirname "$0")/lib.sh"
need_tracefs
need_command busctl
need_event sched:sched_switch irq:softirq_entry

session sched <<-EOF
	[Trace]
	Event=sched:sched_switch
	[Storage]
	FlushSec=200ms
EOF
session irq <<-EOF
	[Session]
	Mode=flight
	[Trace]
	Event=irq
EOF
export DBUS_SYSTEM_BUS_ADDRESS=unix:path=$T/no-bus
flyrecd_start
sleep 0.5

mkdir "$T/bin"
cat >"$T/bin/flyrecctl" <<-EOF
	#!/bin/sh
	exec "$FLYRECCTL" "--runtime-dir=$RUNTIME" "\$@"
EOF
chmod +x "$T/bin/flyrecctl"

# the lines of examples, without roff's escapes
examples() { # PAGE COMMAND
	sed -n -e '/^\.EX/,/^\.EE/bshow' -e '/^\.nf/,/^\.fi/bshow' -e b -e ':show' -e 's/\\-/-/g' \
		-e "s/^$2 /&/p" "$SRC/man/$1" |
		sed -e "s,/tmp/,$T/,g" -e "s,/run/flyrec/control,$RUNTIME/control,g"
}

n=0
while read -r line; do
	PATH=$T/bin:$PATH bash -o pipefail -c "$line" >"$T/out" 2>"$T/err" </dev/null ||
		# the task of the example may not have waited just now
		{ [ $? = 1 ] && [[ $line = 'flyrecctl why '* ]] && grep -q 'no wait\|no such task' "$T/err"; } ||
		fail "flyrecctl(1): $line: $(cat "$T/err")"
	n=$((n + 1))
done < <(examples flyrecctl.1 flyrecctl)
[ $n -ge 20 ] || fail "only $n examples in flyrecctl(1)"
verify "$T/now.dat"
n=0
while read -r line; do
	case $line in
	*--address=*)
		bash -c "$line" >"$T/out" 2>"$T/err" || fail "org.flyrec.Recorder1(5): $line: $(cat "$T/err")"
		n=$((n + 1))
		;;
	esac
done < <(examples org.flyrec.Recorder1.5 busctl)
[ $n -ge 3 ] || fail "only $n examples in org.flyrec.Recorder1(5)"
flyrecd_stop

# --- nothing is left out
verbs=$("$FLYRECCTL" --help | sed -n '/^Look:/,/^Options/s/^  \([a-z][a-z-]*\) .*/\1/p')
[ "$(wc -w <<<"$verbs")" -ge 18 ] || fail "verbs: $verbs"
page=$(sed -e 's/\\-/-/g' -e 's/\\f[A-Z]//g' "$SRC/man/flyrecctl.1")
completion=$(cat "$SRC/completion/flyrecctl")
for verb in $verbs; do
	grep -qE "^\.SS.*\b$verb\b" <<<"$page" || fail "flyrecctl(1) has no $verb"
	grep -qE "(^|[[:space:]'])$verb([[:space:]']|$)" <<<"$completion" || fail "the completion has no $verb"
	"$FLYRECCTL" "$verb" --help >"$T/help" || fail "$verb --help"
	head -n 1 "$T/help" | grep -q " $verb" || fail "$verb --help says $(head -n 1 "$T/help")"
	while read -r option; do
		grep -qF -- "$option" <<<"$page" || fail "flyrecctl(1) has no $option"
		grep -qF -- "$option" <<<"$completion" || fail "the completion has no $option"
	done < <(sed -n 's/^  *\(-[a-zA-Z] \)\?\(--[a-z-]*\).*/\2/p' "$T/help")
done
