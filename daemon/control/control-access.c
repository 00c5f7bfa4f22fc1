/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <string.h>
#include <sys/socket.h>

#include "basic/parse.h"
#include "daemon/control/control-access.h"

#define NO_GROUP ((gid_t)-1)

/* clang-format off */
static const struct {
	const char *interface;
	const char *member; /* NULL: all */
	enum access_right right;
} table[] = {
	{ "org.freedesktop.DBus", NULL, ACCESS_NONE },
	{ "org.freedesktop.DBus.Peer", NULL, ACCESS_NONE },
	{ "org.freedesktop.DBus.Introspectable", NULL, ACCESS_QUERY },
	{ "org.freedesktop.DBus.Properties", NULL, ACCESS_QUERY },
	{ "org.freedesktop.DBus.ObjectManager", NULL, ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "ListSessions", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "GetSession", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "ListEvents", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "GetBootParameters", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "GetEventCost", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "ListFiles", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "GetStatistics", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "GetLastHour", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "OpenFile", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Manager", "SnapshotTogether", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Session", "Snapshot", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Session", "SnapshotLimited", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Session", "Trigger", ACCESS_QUERY },
	{ "org.flyrec.Recorder1.Session", "OpenTail", ACCESS_QUERY },
};
/* clang-format on */

int access_read_peer(int fd, struct access_peer *ret)
{
	struct access_peer peer = {};
	struct ucred cred;
	socklen_t size = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &size) < 0)
		return -errno;
	if (size != sizeof(cred) || cred.pid <= 0)
		return -ENODATA;
	peer.uid = cred.uid;
	peer.pid = cred.pid;
	size = sizeof(peer.groups) - sizeof(gid_t);
	/* Beyond our limit (ERANGE), or an old kernel: the primary group alone */
	if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, peer.groups, &size) >= 0)
		peer.n_groups = size / sizeof(gid_t);
	peer.groups[peer.n_groups++] = cred.gid;
	*ret = peer;
	return 0;
}

/* A number that is no group's name is one, whether it has a name or not */
static gid_t find_group(const char *name)
{
	const struct group *group = name && *name ? getgrnam(name) : NULL;
	unsigned number;

	if (group)
		return group->gr_gid;
	return name && parse_unsigned(name, &number) >= 0 ? (gid_t)number : NO_GROUP;
}

static bool groups_hidden(void)
{
	_cleanup_close_ int fd = open("/etc/group", O_RDONLY | O_CLOEXEC);

	return fd < 0 && errno == EACCES;
}

int access_find_groups(const char *admin_group, struct access_groups *groups)
{
	gid_t flyrec = find_group("flyrec"), admin = find_group(admin_group);
	bool hidden = groups_hidden(), same;

	if (!admin_group)
		admin_group = "";
	same = strcmp(groups->admin_name, admin_group) == 0;
	if (flyrec != NO_GROUP || !hidden)
		groups->flyrec = flyrec;
	if (admin != NO_GROUP || !hidden || !same)
		groups->admin = admin;
	(void)snprintf(groups->admin_name, sizeof(groups->admin_name), "%s", admin_group);
	return groups->admin == NO_GROUP && *admin_group && hidden ? -EACCES : 0;
}

enum access_right access_needed(const char *interface, const char *member)
{
	for (size_t i = 0; interface && member && i < ARRAY_SIZE(table); i++)
		if (strcmp(table[i].interface, interface) == 0 &&
		    (!table[i].member || strcmp(table[i].member, member) == 0))
			return table[i].right;
	return ACCESS_CHANGE;
}

static bool is_member(const struct access_peer *peer, gid_t group)
{
	for (size_t i = 0; group != NO_GROUP && i < peer->n_groups; i++)
		if (peer->groups[i] == group)
			return true;
	return false;
}

bool access_allowed(const struct access_peer *peer, const struct access_groups *groups,
		    enum access_right right)
{
	if (right == ACCESS_NONE || peer->uid == 0 || is_member(peer, groups->admin))
		return true;
	return right == ACCESS_QUERY && is_member(peer, groups->flyrec);
}

const char *access_who(enum access_right right)
{
	return right == ACCESS_CHANGE
		       ? "root or membership in AdminGroup= (flyrecd.conf(5))"
		       : "root or membership in group flyrec or AdminGroup= (flyrecd.conf(5))";
}
