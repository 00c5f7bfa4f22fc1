#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-or-later
# run-all must notice what a test leaves behind, take it away, and count correctly.
. "$(dirname "$0")/lib.sh"
need_tracefs
mkdir -p "$T/tree/tests/integration" "$T/build" "$T/logs"
cp "$SRC"/tests/integration/{run-all,attempt,leftovers} "$T/tree/tests/integration/"

add_test() { # NAME
	{ echo '#!/bin/sh' && cat; } >"$T/tree/tests/integration/test-$1.sh"
	chmod +x "$T/tree/tests/integration/test-$1.sh"
}
add_test good <<'EOF'
exit 0
EOF
add_beside() { # NAME OTHER: ends well only if the other one runs at the same time
	add_test "$1" <<-EOF
		# beside: yes
		touch "$T/$1"
		for i in \$(seq 100); do
			[ ! -e "$T/$2" ] || exit 0
			sleep 0.1
		done
		exit 1
	EOF
}
add_beside left right
add_beside right left
add_test skipped <<'EOF'
echo SKIP: no moon; exit 77
EOF
add_test bad <<'EOF'
echo FAIL: broken; exit 1
EOF
add_test once <<EOF
echo x >>"$T/once"; echo "FAIL: once"; exit 1
EOF
add_test again <<EOF
# may-fail: the moon
echo x >>"$T/again"; [ "\$(wc -l <"$T/again")" = 2 ] || { echo "FAIL: no moon"; exit 1; }
EOF
add_test wrong <<EOF
# may-fail: the moon
echo x >>"$T/wrong"; echo "FAIL: wrong data: two of one"; exit 1
EOF
add_test slow <<'EOF'
# time-limit: 1
sleep 20
EOF
add_test instance <<'EOF'
mkdir "/sys/kernel/tracing/instances/${FLYREC_TEST_PREFIX}left"
EOF
add_test mount <<'EOF'
mkdir "$FLYREC_TEST_DIR/m"; mount -t tmpfs tmpfs "$FLYREC_TEST_DIR/m"
EOF
add_test process <<'EOF'
setsid sleep 300 &
EOF
add_test event <<'EOF'
mkdir -p "$FLYREC_TEST_DIR/etc/sessions.d"
echo >"$FLYREC_TEST_DIR/etc/sessions.d/s.conf"
group=$(echo "${FLYREC_TEST_PREFIX}s" | tr -c 'A-Za-z0-9\n' _)
echo "p:$group/e /bin/sh:0x1000" >>/sys/kernel/tracing/dynamic_events || exit 1
EOF
loops_before=$(losetup --list --noheadings | wc -l)
add_test loop <<'EOF'
truncate -s 1M "$FLYREC_TEST_DIR/image"; losetup -f "$FLYREC_TEST_DIR/image"
EOF

status=0
env -u FLYREC_RUN_ALL "$T/tree/tests/integration/run-all" --build="$T/build" >"$T/out" || status=$?
cat "$T/out"
[ "$status" = 1 ] || fail "run-all ended with $status"
[ "$(tail -n 1 "$T/out")" = "4 passed, 9 failed, 1 skipped" ] || fail "wrong count"
for what in 'PASS integration/test-good' 'SKIP integration/test-skipped.* no moon' \
	'FAIL integration/test-bad.* broken' 'FAIL integration/test-slow.* not done after 1 s' \
	'FAIL integration/test-instance.* left behind: instance' \
	'FAIL integration/test-mount.* left behind: mount' \
	'FAIL integration/test-process.* left behind: process' \
	'FAIL integration/test-event.* left behind: dynamic event t_.*_s/e' \
	'FAIL integration/test-loop.* left behind: loop device'; do
	grep -q "^$what" "$T/out" || fail "not reported: $what"
done
# only what says so is tried again, and that is counted; never wrong data
grep -q '^PASS integration/test-again.* at try 2$' "$T/out" || fail "a test that may fail is not tried again"
grep -qx 'At a later try: 1' "$T/out" || fail "what passed at a later try is not counted"
for what in once wrong; do
	[ "$(wc -l <"$T/$what")" = 1 ] || fail "$what is tried again"
done
[ "$(losetup --list --noheadings | wc -l)" -le "$loops_before" ] || fail "a loop device was not removed"
