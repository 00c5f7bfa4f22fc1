/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "basic/ini.h"
#include "basic/near.h"
#include "basic/strv.h"
#include "config/config-files.h"
#include "config/config-keys.h"
#include "config/config.h"
#include "fleet/config.h"

DEFINE_CLEANUP(struct fleet_config *, fleet_config_free)

#define TIME_MAX   (365ULL * 24 * 3600 * USEC_PER_SEC)
#define SIZE_LIMIT ((uint64_t)INT64_MAX)
#define TOPIC_MAX  64

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

bool fleet_name_valid(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= FLEET_NAME_MAX && strchr(LETTERS, name[0]) &&
	       strspn(name, LETTERS "._-") == n;
}

/* --- values */

static int check_name(const char *text, const void *object, struct fault *why)
{
	if (fleet_name_valid(text))
		return 0;
	return value_refuse(why,
			    "not a name: letters, digits, \".\", \"_\" and \"-\", at most %d, the "
			    "first a letter or digit",
			    FLEET_NAME_MAX);
}

static int check_topic(const char *text, const void *object, struct fault *why)
{
	size_t n = strlen(text);

	/* "$" is the broker's, "+" and "#" stand for others */
	if (n <= TOPIC_MAX && text[0] != '/' && text[n - 1] != '/' &&
	    strspn(text, LETTERS "._-/") == n && !strstr(text, "//"))
		return 0;
	return value_refuse(why, "not a topic: names with \"/\" between them, at most %d",
			    TOPIC_MAX);
}

static int check_address(const char *text, const void *object, struct fault *why)
{
	if (strspn(text, LETTERS ".:_-%") == strlen(text))
		return 0;
	return value_refuse(why, "neither the name of a host nor an address");
}

static int check_path(const char *text, const void *object, struct fault *why)
{
	return text[0] == '/' ? 0 : value_refuse(why, "not an absolute path");
}

static int check_session(const char *text, const void *object, struct fault *why)
{
	return config_is_session_name(text) ? 0 : value_refuse(why, "\"%s\" is no session", text);
}

/* A folder of rclone's: what it would take for an option, or a folder of where it runs, is none */
static int check_remote(const char *text, const void *object, struct fault *why)
{
	size_t n = strspn(text, LETTERS "_");

	if (text[0] == '/' || (n > 0 && text[n + strspn(text + n, LETTERS "_-+@. ")] == ':'))
		return 0;
	return value_refuse(why, "neither REMOTE:FOLDER of rclone nor an absolute path");
}

#define FLEET(field) offsetof(struct fleet_config, field)
#define PEM_DIR	     "/etc/flyrec/fleet"

/* clang-format off */
static const struct config_key fleet_keys[] = {
	{ "Fleet", "Group", 0, &value_string, FLEET(group), "all", .check = check_name },
	{ "Fleet", "Host", 0, &value_string, FLEET(host), .check = check_name },

	{ "Broker", "Host", 0, &value_string, FLEET(broker.host), .check = check_address },
	{ "Broker", "Port", 0, &value_unsigned, FLEET(broker.port), "8883", 1, 65535 },
	{ "Broker", "CA", 0, &value_string, FLEET(broker.ca), PEM_DIR "/ca.crt", .check = check_path },
	{ "Broker", "Certificate", 0, &value_string, FLEET(broker.certificate), PEM_DIR "/host.crt",
	  .check = check_path },
	{ "Broker", "Key", 0, &value_string, FLEET(broker.key), PEM_DIR "/host.key", .check = check_path },
	{ "Broker", "Topic", 0, &value_string, FLEET(broker.topic), "flyrec", .check = check_topic },

	{ "Announce", "Sessions", 0, &value_words, FLEET(announce.sessions), .check = check_session },
	{ "Announce", "BeforeSec", 0, &value_time, FLEET(announce.before_usec), "10s",
	  USEC_PER_SEC / 10, TIME_MAX },
	{ "Announce", "ExpireSec", 0, &value_time, FLEET(announce.expire_usec), "5min", USEC_PER_SEC,
	  TIME_MAX },

	{ "Follow", "Sessions", 0, &value_words, FLEET(follow.sessions), .check = check_session },
	{ "Follow", "MaxWindowSec", 0, &value_time, FLEET(follow.max_window_usec), "2min",
	  USEC_PER_SEC / 10, TIME_MAX },
	{ "Follow", "MaxAgeSec", 0, &value_time, FLEET(follow.max_age_usec), "5min", USEC_PER_SEC,
	  TIME_MAX },
	{ "Follow", "MaxAheadSec", 0, &value_time, FLEET(follow.max_ahead_usec), "1min", 0, TIME_MAX },
	{ "Follow", "MarginSec", 0, &value_time, FLEET(follow.margin_usec), "500ms", 0,
	  10 * USEC_PER_SEC },

	{ "Store", "Remote", 0, &value_string, FLEET(store.remote), .check = check_remote },
	{ "Store", "Config", 0, &value_string, FLEET(store.config), "/etc/flyrec/rclone.conf",
	  .check = check_path },
	{ "Store", "Rate", 0, &value_size, FLEET(store.rate), "2M", 1024, SIZE_LIMIT },
	{ "Store", "Compress", 0, &value_bool, FLEET(store.compress), "yes" },
	{ "Store", "Remove", 0, &value_bool, FLEET(store.remove), "no" },
	{ "Store", "Sample", 0, &value_percent, FLEET(store.sample), "0", 0, 100 },
	{ "Store", "PollSec", 0, &value_time, FLEET(store.poll_usec), "1min", USEC_PER_SEC, TIME_MAX },
	{ "Store", "RetrySec", 0, &value_time, FLEET(store.retry_usec), "5s", USEC_PER_SEC,
	  600 * USEC_PER_SEC },
};
/* clang-format on */

#define FOR_EACH_KEY(key)                                                                          \
	for (const struct config_key *key = fleet_keys; key < fleet_keys + ARRAY_SIZE(fleet_keys); \
	     key++)

void fleet_config_free(struct fleet_config *config)
{
	if (!config)
		return;
	FOR_EACH_KEY(key)
	key->kind->clear(key, config);
	free(config);
}

static int config_new(struct fleet_config **ret)
{
	_cleanup_(fleet_config_freep) struct fleet_config *config = calloc(1, sizeof(*config));
	int r = config ? 0 : -ENOMEM;

	if (r >= 0)
		FOR_EACH_KEY(key)
	if (r >= 0)
		r = value_init(key, config);
	if (r >= 0)
		*ret = TAKE_PTR(config);
	return r;
}

/* --- reading */

struct loading {
	struct fleet_config *config, *defaults;
	fleet_complain_t complain;
	void *userdata;
	unsigned n_faults;
};

static void loading_done(struct loading *l)
{
	fleet_config_free(l->config);
	fleet_config_free(l->defaults);
}

static void loading_complain(struct loading *l, const char *format, ...) _printf_(2, 3);
static void loading_complain(struct loading *l, const char *format, ...)
{
	_cleanup_free_ char *text = NULL;
	va_list ap;

	va_start(ap, format);
	text = vstrf(format, ap);
	va_end(ap);
	l->n_faults++;
	l->complain(l->userdata, text ? text : strerror(ENOMEM));
}

static const struct config_key *find_key(const char *section, const char *name)
{
	FOR_EACH_KEY(key)
	if (strcmp(key->section, section) == 0 && strcmp(key->name, name) == 0)
		return key;
	return NULL;
}

static void explain_unknown(struct loading *l, const struct ini_entry *e)
{
	struct near_list near = {};
	char meant[NEAR_TEXT_SIZE];
	bool section = false;

	FOR_EACH_KEY(key)
	{
		if (strcmp(key->section, e->section) == 0) {
			section = true;
			near_add(&near, e->key, key->name);
		}
	}
	if (!section) {
		loading_complain(l, "%s:%u: there is no section [%s]", e->file, e->line,
				 e->section);
		return;
	}
	loading_complain(l, "%s:%u: there is no key %s= in [%s]%s", e->file, e->line, e->key,
			 e->section, near_text(&near, meant));
}

static int on_entry(const struct ini_entry *e, void *userdata)
{
	struct loading *l = userdata;
	const struct config_key *key = e->key ? find_key(e->section, e->key) : NULL;
	struct fault why = {};
	int r;

	if (!e->key)
		return 0;
	if (!key) {
		explain_unknown(l, e);
		return 0;
	}
	if (!*e->value)
		return value_reset(key, l->config, l->defaults);
	r = key->kind->parse(key, l->config, e->value, &why);
	if (r == -EINVAL)
		loading_complain(l, "%s:%u: %s=%s: %s", e->file, e->line, e->key, e->value,
				 why.text);
	return r == -EINVAL ? 0 : r;
}

static void on_fault(const char *file, unsigned line, const char *text, void *userdata)
{
	loading_complain(userdata, "%s:%u: %s", file, line, text);
}

/* Without Host= it is the machine's name, if that can be one */
static int find_host(struct loading *l, const char *path)
{
	char name[HOST_NAME_MAX + 1];

	if (l->config->host)
		return 0;
	if (gethostname(name, sizeof(name)) < 0 || !fleet_name_valid(name)) {
		loading_complain(l, "%s: Host= is missing, and this machine has no name for it",
				 path);
		return 0;
	}
	l->config->host = strdup(name);
	return l->config->host ? 0 : -ENOMEM;
}

int fleet_config_load(const char *path, fleet_complain_t complain, void *userdata,
		      struct fleet_config **ret)
{
	const struct ini_handler handler = {.on_entry = on_entry, .on_fault = on_fault};
	_cleanup_(loading_done) struct loading l = {.complain = complain, .userdata = userdata};
	_cleanup_free_ char *text = NULL;
	struct fault why = {};
	size_t size;
	int r = config_new(&l.config);

	if (r >= 0)
		r = config_new(&l.defaults);
	if (r < 0)
		return r;
	r = config_files_read(path, &text, &size, &why);
	if (r < 0 && r != -ENOMEM)
		loading_complain(&l, "%s: %s", path, why.text);
	if (r >= 0)
		r = ini_parse(path, text, size, &handler, &l);
	if (r >= 0)
		r = find_host(&l, path);
	if (r < 0)
		return r;
	if (l.n_faults > 0)
		return -EINVAL;
	*ret = TAKE_PTR(l.config);
	return 0;
}

/* --- printing */

/* What follows "KEY=" in each line of it */
static int print_values(const struct config_key *key, const struct fleet_config *config, FILE *f)
{
	_cleanup_free_ char *lines = NULL;
	size_t size = 0, skip = strlen(key->name) + 1;
	FILE *memory = open_memstream(&lines, &size);

	if (!memory)
		return -ENOMEM;
	key->kind->print(key, config, memory);
	if (fclose(memory) != 0)
		return -ENOMEM;
	for (const char *line = lines; *line; line += strcspn(line, "\n") + 1)
		(void)fprintf(f, "%.*s\n", (int)strcspn(line + skip, "\n"), line + skip);
	return 0;
}

int fleet_config_print(const struct fleet_config *config, const char *what, FILE *f)
{
	const char *section = NULL;

	FOR_EACH_KEY(key)
	{
		size_t n = strlen(key->section);

		if (what && strncmp(what, key->section, n) == 0 && what[n] == '.' &&
		    strcmp(what + n + 1, key->name) == 0)
			return print_values(key, config, f);
		if (what)
			continue;
		if (!section || strcmp(section, key->section) != 0)
			(void)fprintf(f, "%s[%s]\n", section ? "\n" : "", key->section);
		section = key->section;
		key->kind->print(key, config, f);
	}
	return what ? -ENOENT : 0;
}
