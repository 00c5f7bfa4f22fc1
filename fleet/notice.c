/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <string.h>

#include "basic/parse.h"
#include "basic/strv.h"
#include "fleet/notice.h"

/* The value of a key, cut off at @max bytes, but not within a character; "": it has none */
static void take(const char *lines, const char *key, size_t max, char *to)
{
	size_t length = strlen(key), n;

	to[0] = '\0';
	for (const char *line = lines; *line; line += n + (line[n] == '\n')) {
		n = strcspn(line, "\n");
		if (n <= length || strncmp(line, key, length) != 0 || line[length] != '=')
			continue;
		n -= length + 1;
		line += length + 1;
		if (n > max)
			for (n = max; n > 0 && ((unsigned char)line[n] & 0xc0) == 0x80;)
				n--;
		memcpy(to, line, n);
		to[n] = '\0';
		return;
	}
}

static uint64_t take_usec(const char *lines, const char *key)
{
	char text[24];
	uint64_t usec;

	take(lines, key, sizeof(text) - 1, text);
	return parse_u64(text, &usec) < 0 ? UINT64_MAX : usec;
}

int notice_read(const struct fleet_config *config, const char *bytes, size_t size,
		struct message *ret, struct fault *why)
{
	_cleanup_free_ char *lines = strndup(bytes, size);
	const struct fleet_follow_config *limits = &config->follow;
	const uint64_t most =
		limits->max_window_usec - MIN(2 * limits->margin_usec, limits->max_window_usec / 2);
	struct message m = {};

	if (!lines)
		return fault_errno(why, -ENOMEM, "cannot read a notice");
	(void)snprintf(m.host, sizeof(m.host), "%s", config->host);
	take(lines, "ID", OWN_ID_MAX, m.id);
	take(lines, "REASON", MESSAGE_REASON_MAX, m.reason);
	take(lines, "SESSION", SESSION_NAME_MAX, m.session);
	take(lines, "TEXT", MESSAGE_TEXT_MAX, m.text);
	if (!m.text[0])
		take(lines, "CAUSE", MESSAGE_TEXT_MAX, m.text);
	m.trigger_usec = take_usec(lines, "TRIGGER_USEC");
	m.since_usec = take_usec(lines, "SINCE_USEC");
	m.until_usec = take_usec(lines, "UNTIL_USEC");
	if (m.since_usec == 0 && m.trigger_usec != UINT64_MAX)
		m.since_usec = m.trigger_usec - MIN(m.trigger_usec, config->announce.before_usec);
	if (!own_id_valid(m.id) || !m.reason[0] || !m.session[0] || m.trigger_usec == UINT64_MAX ||
	    m.since_usec == UINT64_MAX || m.until_usec == UINT64_MAX ||
	    m.since_usec >= m.until_usec)
		return fault_set(why, -EBADMSG, "not as flyrecd's: %s", m.id);
	/* More than others take: what is next to the trigger */
	m.since_usec = MAX(m.since_usec, m.until_usec - MIN(m.until_usec, most));
	*ret = m;
	return 0;
}
