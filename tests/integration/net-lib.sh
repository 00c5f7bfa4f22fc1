# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Hosts with a network of their own, for tests that have read lib.sh: namespaces, which a bridge in another one
# connects. Nothing of it is in the machine's own network, and all of it ends with the processes that hold it.
#
#	net_new h1 h2 h3              # 10.57.0.1, 10.57.0.2, 10.57.0.3, on eth0
#	"${IN_NET[@]}" ip address     # on the host of net_of NAME
#	net_unplug h3; net_plug h3

declare -A NET_PID=() NET_ADDRESS=()
NET_SWITCH='' IN_NET=()

# net_hold: a namespace; the process that holds it is in $!
net_hold() {
	background unshare --net sleep infinity
	# shellcheck disable=SC2016 # for the inner shell
	wait_for 10 bash -c '[ "$(readlink "/proc/$1/ns/net")" != "$(readlink /proc/self/ns/net)" ]' held $! ||
		fail "no network namespace"
	nsenter "--net=/proc/$!/ns/net" ip link set lo up
}

in_switch() {
	nsenter "--net=/proc/$NET_SWITCH/ns/net" "$@"
}

net_new() {
	local name n=0
	need_root
	need_command ip nsenter unshare
	unshare --net true 2>/dev/null || skip "cannot make network namespaces here"
	net_hold
	NET_SWITCH=$!
	in_switch ip link add name switch type bridge 2>/dev/null || skip "this kernel has no bridges"
	in_switch ip link set switch up
	for name in "$@"; do
		net_hold
		NET_PID[$name]=$! NET_ADDRESS[$name]=10.57.0.$((n += 1))
		in_switch ip link add name "$name" type veth peer name eth0 netns "${NET_PID[$name]}" 2>/dev/null ||
			skip "this kernel has no veth"
		in_switch ip link set "$name" master switch
		in_switch ip link set "$name" up
		net_of "$name"
		"${IN_NET[@]}" ip address add "${NET_ADDRESS[$name]}/24" dev eth0
		"${IN_NET[@]}" ip link set eth0 up
	done
}

net_of() { # NAME: IN_NET, by which commands run on its network
	IN_NET=(nsenter "--net=/proc/${NET_PID[$1]}/ns/net")
}

net_unplug() {
	in_switch ip link set "$1" down
}
net_plug() {
	in_switch ip link set "$1" up
}
