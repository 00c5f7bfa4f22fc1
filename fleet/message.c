/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <json-c/json.h>
#include <string.h>

#include "basic/escape.h"
#include "basic/strv.h"
#include "config/config.h"
#include "fleet/message.h"

#define MESSAGE_VERSION 1
#define DEPTH		3
/* Beyond are no times, and sums of them could overflow */
#define USEC_MAX ((int64_t)(UINT64_C(1) << 53))

/* --- reading */

static void tokener_freep(struct json_tokener **tokener)
{
	if (*tokener)
		json_tokener_free(*tokener);
}

static void object_putp(struct json_object **object)
{
	(void)json_object_put(*object);
}

static struct json_object *parse(const void *payload, size_t size)
{
	_cleanup_(tokener_freep) struct json_tokener *tokener = json_tokener_new_ex(DEPTH);
	struct json_object *object;

	if (!tokener)
		return NULL;
	json_tokener_set_flags(tokener, JSON_TOKENER_STRICT | JSON_TOKENER_VALIDATE_UTF8);
	object = json_tokener_parse_ex(tokener, payload, (int)size);
	/* One that is not complete, or more than one */
	if (json_tokener_get_error(tokener) != json_tokener_success ||
	    json_tokener_get_parse_end(tokener) != size ||
	    !json_object_is_type(object, json_type_object)) {
		(void)json_object_put(object);
		return NULL;
	}
	return object;
}

static enum message_fault wrong(struct fault *why, const char *name, const char *what)
{
	(void)fault_set(why, -EBADMSG, "\"%s\" is %s", name, what);
	return MESSAGE_WRONG_FIELD;
}

/* A string of @min to @max bytes without control characters */
static enum message_fault read_text(struct json_object *object, const char *name, size_t min,
				    size_t max, char *to, struct fault *why)
{
	struct json_object *value = json_object_object_get(object, name);
	const char *text = json_object_get_string(value);
	size_t n;

	if (!json_object_is_type(value, json_type_string))
		return wrong(why, name, value ? "no string" : "missing");
	n = (size_t)json_object_get_string_len(value);
	if (n < min || n > max)
		return wrong(why, name, "too short or too long");
	if (escape_plain(text, n, false) != n || memchr(text, '\t', n))
		return wrong(why, name, "not to be shown");
	memcpy(to, text, n + 1);
	return MESSAGE_OK;
}

static enum message_fault read_usec(struct json_object *object, const char *name, uint64_t *ret,
				    struct fault *why)
{
	struct json_object *value = json_object_object_get(object, name);
	int64_t n = json_object_get_int64(value);

	if (!json_object_is_type(value, json_type_int))
		return wrong(why, name, value ? "no whole number" : "missing");
	if (n <= 0 || n >= USEC_MAX)
		return wrong(why, name, "no time");
	*ret = (uint64_t)n;
	return MESSAGE_OK;
}

static enum message_fault read_version(struct json_object *object, struct fault *why)
{
	struct json_object *value = json_object_object_get(object, "v");

	if (!json_object_is_type(value, json_type_int))
		return wrong(why, "v", value ? "no whole number" : "missing");
	if (json_object_get_int64(value) == MESSAGE_VERSION)
		return MESSAGE_OK;
	(void)fault_set(why, -EPROTONOSUPPORT, "version %lld, not %d",
			(long long)json_object_get_int64(value), MESSAGE_VERSION);
	return MESSAGE_OTHER_VERSION;
}

static bool is_reason(const char *reason)
{
	return strspn(reason, "abcdefghijklmnopqrstuvwxyz0123456789-") == strlen(reason);
}

/* All that a message of a trigger has */
static enum message_fault read_trigger(struct json_object *object, struct message *m,
				       struct fault *why)
{
	enum message_fault fault = read_text(object, "id", 1, OWN_ID_MAX, m->id, why);

	if (fault == MESSAGE_OK && !own_id_valid(m->id))
		fault = wrong(why, "id", "no id");
	if (fault == MESSAGE_OK)
		fault = read_text(object, "reason", 1, MESSAGE_REASON_MAX, m->reason, why);
	if (fault == MESSAGE_OK && !is_reason(m->reason))
		fault = wrong(why, "reason", "no reason");
	if (fault == MESSAGE_OK)
		fault = read_text(object, "session", 1, SESSION_NAME_MAX, m->session, why);
	if (fault == MESSAGE_OK && !config_is_session_name(m->session))
		fault = wrong(why, "session", "no session");
	if (fault == MESSAGE_OK)
		fault = read_text(object, "text", 0, MESSAGE_TEXT_MAX, m->text, why);
	if (fault == MESSAGE_OK)
		fault = read_usec(object, "trigger", &m->trigger_usec, why);
	if (fault == MESSAGE_OK)
		fault = read_usec(object, "since", &m->since_usec, why);
	if (fault == MESSAGE_OK)
		fault = read_usec(object, "until", &m->until_usec, why);
	if (fault == MESSAGE_OK && m->since_usec >= m->until_usec)
		fault = wrong(why, "until", "not after \"since\"");
	return fault;
}

enum message_fault message_read(const void *payload, size_t size, struct message *ret,
				struct fault *why)
{
	_cleanup_(object_putp) struct json_object *object = NULL;
	struct message m = {};
	enum message_fault fault;

	if (size > MESSAGE_MAX) {
		(void)fault_set(why, -EMSGSIZE, "%zu bytes, %d are allowed", size, MESSAGE_MAX);
		return MESSAGE_TOO_LONG;
	}
	object = parse(payload, size);
	if (!object) {
		(void)fault_set(why, -EBADMSG, "no JSON object");
		return MESSAGE_NOT_JSON;
	}
	fault = read_version(object, why);
	if (fault == MESSAGE_OK)
		fault = read_text(object, "host", 1, FLEET_NAME_MAX, m.host, why);
	if (fault == MESSAGE_OK && !fleet_name_valid(m.host))
		fault = wrong(why, "host", "no host");
	m.check = json_object_get_boolean(json_object_object_get(object, "check"));
	if (fault == MESSAGE_OK && !m.check)
		fault = read_trigger(object, &m, why);
	if (fault == MESSAGE_OK)
		*ret = m;
	return fault;
}

/* --- writing */

static void add(struct json_object *object, const char *name, struct json_object *value, int *r)
{
	if (!value || json_object_object_add(object, name, value) < 0) {
		(void)json_object_put(value);
		*r = -ENOMEM;
	}
}

/* @n bytes of it at most, none of them a part of a character */
static size_t shortened(const char *text, size_t n)
{
	size_t length = strlen(text);

	if (length <= n)
		return length;
	while (n > 0 && ((unsigned char)text[n] & 0xc0) == 0x80)
		n--;
	return n;
}

static struct json_object *number(uint64_t n)
{
	return json_object_new_int64((int64_t)n);
}

static void add_trigger(struct json_object *object, const struct message *m, size_t text_max,
			int *r)
{
	size_t n = shortened(m->text, text_max);

	add(object, "id", json_object_new_string(m->id), r);
	add(object, "trigger", number(m->trigger_usec), r);
	add(object, "since", number(m->since_usec), r);
	add(object, "until", number(m->until_usec), r);
	add(object, "reason", json_object_new_string(m->reason), r);
	add(object, "session", json_object_new_string(m->session), r);
	add(object, "text", json_object_new_string_len(m->text, (int)n), r);
}

/* What escaping makes of a text may be too long */
int message_write(const struct message *m, char **ret)
{
	for (size_t text_max = MESSAGE_TEXT_MAX;; text_max /= 2) {
		_cleanup_(object_putp) struct json_object *object = json_object_new_object();
		const char *text = NULL;
		int r = 0;

		if (!object)
			return -ENOMEM;
		add(object, "v", json_object_new_int(MESSAGE_VERSION), &r);
		add(object, "host", json_object_new_string(m->host), &r);
		if (m->check)
			add(object, "check", json_object_new_boolean(true), &r);
		else
			add_trigger(object, m, text_max, &r);
		if (r >= 0)
			text = json_object_to_json_string_ext(object, JSON_C_TO_STRING_PLAIN);
		if (!text)
			return -ENOMEM;
		if (strlen(text) > MESSAGE_MAX && text_max > 0)
			continue;
		*ret = strdup(text);
		return *ret ? 0 : -ENOMEM;
	}
}

/* --- topics */

char *message_topic(const struct fleet_config *config, const char *host)
{
	return strf("%s/snapshot/%s/%s", config->broker.topic, config->group, host);
}

const char *message_host(const struct fleet_config *config, const char *topic)
{
	_cleanup_free_ char *before = message_topic(config, "");
	size_t n = before ? strlen(before) : 0;

	if (!before || strncmp(topic, before, n) != 0 || !fleet_name_valid(topic + n))
		return NULL;
	return topic + n;
}
