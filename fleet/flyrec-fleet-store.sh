# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: LGPL-2.1-or-later
#
# What flyrec-fleet-ship and flyrec-fleet-pull have in common: the store, which is a folder of rclone's,
# and what the names in it are.
#
#   REMOTE/GROUP/index/ID/HOST/SESSION/FILE.have.json     a host has it
#                                      FILE.stored.json   it is in the store, whole
#                                      FILE.gone.json     it was removed there before anybody asked
#               /wanted/HOST/ID.json                      a host shall send what it has of a moment
#               /data/HOST/SESSION/FILE
#
# Each is written once and never again, and names are all that is relied upon: who may write to the store may
# write anything, so that names are checked, and contents are taken for nothing but what they are compared with.

set -euo pipefail
export LC_ALL=C
umask 027
# rclone 1.60 cannot have it; it uses the machine's certificates, or those of its own configuration
unset AWS_CA_BUNDLE
# The bucket is there, and nobody here may make one
export RCLONE_S3_NO_CHECK_BUCKET=true

# Of who reads this: where rclone's complaints go; below: what is found
errors=/dev/null host='' top='' found=''
flyrec_fleet=${FLYREC_FLEET:-flyrec-fleet}

complain() {
	printf 'flyrec-fleet: %s\n' "$*" >&2
}

# give_up TEXT: what was asked for cannot be done
give_up() {
	complain "$*"
	exit 1
}

# usage SCRIPT: the comment at its beginning
usage() {
	awk 'NR > 3 && !/^#/ { exit } NR > 3 { sub(/^# ?/, ""); print }' "$1"
}

wrong_usage() { # TEXT
	complain "$* (see --help)"
	exit 2
}

# --- names

is_name() { # of a host, or group: as fleet_name_valid()
	[[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._-]*$ ]] && ((${#1} <= 64))
}
is_session() {
	[[ $1 =~ ^[A-Za-z0-9_-]+$ ]] && ((${#1} <= 200))
}
is_id() { # as own_id_valid()
	[[ $1 =~ ^[A-Za-z0-9][A-Za-z0-9._:-]*$ ]] && ((${#1} <= 96))
}
is_file() { # of a snapshot
	[[ $1 =~ ^[0-9]{8}T[0-9]{6}\.[0-9]{6}Z-[a-z0-9-]+\.dat$ ]] && ((${#1} <= 200))
}

# --- configuration

# read_config: host, top (of the group's folder in the store), and in config all of fleet.conf
declare -A config=()
read_config() {
	local line section='' text
	text=$("$flyrec_fleet" "--config=${FLYREC_FLEET_CONFIG:-/etc/flyrec/fleet.conf}" config) || return 1
	while IFS= read -r line; do
		case $line in
		'['*) section=${line:1:-1} ;;
		*=*) config[$section.${line%%=*}]=${line#*=} ;;
		esac
	done <<<"$text"
	host=${config[Fleet.Host]}
	# "s3:" alone is one, too: its first folder is the group's
	top=${config[Store.Remote]:-} top=${top%/}
	[[ $top == *: ]] || top+=/
	top+=${config[Fleet.Group]}
}

need_store() {
	[ -n "${config[Store.Remote]:-}" ] || give_up "there is no store: Remote= in [Store] of fleet.conf"
}

# --- the store

# remote COMMAND...: rclone; what it complains of is for why()
remote() {
	local file=${config[Store.Config]}
	# nothing but folders and environment, then
	[ -e "$file" ] || file=
	rclone "--config=$file" --ask-password=false --retries=1 --low-level-retries=1 --contimeout=15s \
		--timeout=1m --transfers=1 --checkers=2 --stats=0 "$@" 2>"$errors" </dev/null
}

# why: the last thing that rclone complained of, one line that may be shown
why() {
	local text
	text=$(tail -n 1 "$errors" | tr -cd '[:print:]' | cut -c 1-300)
	text=${text#[0-9][0-9][0-9][0-9]/[0-9][0-9]/[0-9][0-9] [0-9][0-9]:[0-9][0-9]:[0-9][0-9] }
	echo "${text:-no reason was given}"
}

# add_entries FOLDER WHERE: names, which are small, and never replaced. Return: as rclone; 6: another content was
# there under one of the names
add_entries() {
	remote copy --immutable --checksum --no-traverse "$1" "$top/$2"
}

# same_as FILE OBJECT: in place SAME, OTHER, ABSENT. By a checksum that the store has made itself; where it makes
# none, by reading it back. Return: not 0 when the store does not say.
same_as() {
	local status=0 said size algorithm sum
	said=$(remote lsjson --stat --hash-type=sha256 --hash-type=sha1 --hash-type=md5 "$2") || status=$?
	[ $status = 3 ] && said='{"IsDir":true}'
	[ $status = 0 ] || [ $status = 3 ] || return $status
	read -r size algorithm sum < <(jq -r 'if .IsDir then "-1" else
		"\(.Size) \((.Hashes // {}) as $h | [("sha256", "sha1", "md5") | select(($h[.] // "") != "") | "\(.) \($h[.])"] | first // "")"
		end' <<<"$said") || return 1
	found=ABSENT
	[ "$size" != -1 ] || return 0
	found=OTHER
	[ "$size" = "$(stat -c %s "$1")" ] || return 0
	if [ -n "$sum" ]; then
		[ "$sum" != "$("${algorithm}sum" <"$1" | cut -d ' ' -f 1)" ] || found=SAME
		return 0
	fi
	sum=$(remote cat "--bwlimit=${config[Store.Rate]}B" "$2" | sha256sum) || return 1
	[ "$sum" != "$(sha256sum <"$1")" ] || found=SAME
}
