# shellcheck shell=bash
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# Trees of Debian packages, for containers and virtual machines; for scripts that have skip and fail.
# They are kept in $CACHE, under names made of what they are made of.

# shellcheck disable=SC2034 # for those who read this
CACHE=${FLYREC_TEST_CACHE:-/var/cache/flyrec-test}

debian_mirror() {
	local mirror
	# shellcheck disable=SC2016 # apt's, not the shell's
	mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' |
		sed -n 's,/debian/$,/debian,p' | head -n 1)
	echo "${mirror:-http://deb.debian.org/debian}"
}

# debian_make SUITE[-backports] VARIANT PACKAGE,… DIRECTORY
debian_make() {
	local suite=$1 variant=$2 packages=$3 dir=$4 keys mirror log lines
	keys=/usr/share/keyrings/debian-archive-keyring.gpg
	log=$dir.log
	mirror=$(debian_mirror)
	lines="deb [signed-by=$keys] $mirror ${suite%-backports} main
deb [signed-by=$keys] ${mirror%/debian}/debian-security ${suite%-backports}-security main"
	[[ $suite != *-backports ]] || lines+="
deb [signed-by=$keys] $mirror $suite main"
	[ "$variant" != minbase ] || lines=${lines%%$'\n'*}
	rm -rf --one-file-system "$dir"
	mmdebstrap --mode=root --variant="$variant" --format=dir --include="$packages" \
		--aptopt='APT::Install-Recommends "false"' --aptopt='Acquire::Languages "none"' \
		--aptopt='Acquire::Retries "2"' --dpkgopt=force-unsafe-io \
		--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
		--dpkgopt='path-exclude=/usr/share/locale/*' "${suite%-backports}" "$dir" - \
		<<<"$lines" >"$log" 2>&1 || {
		cat "$log" >&2
		rm -rf --one-file-system "$dir"
		! grep -qE 'resolv|connect|fetch|timed out' "$log" || skip "cannot get Debian packages"
		fail "mmdebstrap"
	}
	rm -f "$log"
}

# debian_cached NAME OF COMMAND ARGUMENT...: COMMAND ARGUMENT... DIRECTORY made it, once; its path is in
# CACHED. NAME: with a hash of OF, the command's text and its arguments. Others may want it at the
# same time.
debian_cached() {
	local name=$1 key
	key=$({ echo "${*:2}" && declare -f "$3" debian_make; } | sha256sum | cut -c 1-12)
	CACHED=$CACHE/$name-$key
	mkdir -p "$CACHE"
	exec 9>"$CACHE/$name.lock"
	flock 9
	if [ ! -e "$CACHED" ]; then
		rm -rf --one-file-system "$CACHE/$name"-????????????{,.new}
		echo "making $CACHED" >&2
		"${@:3}" "$CACHED.new"
		mv "$CACHED.new" "$CACHED"
	fi
	exec 9>&-
}
