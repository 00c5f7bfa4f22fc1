/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Calls about files. A disk may keep one waiting, so each is work on a thread of its own; the data
 * of such work belongs to it until it is done.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/strv.h"
#include "daemon/control/control-internal.h"
#include "formats/own-cause.h"
#include "formats/own-findings.h"
#include "formats/own-section.h"
#include "writer/file-info.h"
#include "writer/retention.h"
#include "writer/store.h"

struct listed {
	char *session, *name;
	bool snapshot, pinned;
	struct file_info info;
	char *finding; /* what analysis said of a snapshot; NULL: nothing */
	char **ids;    /* of a snapshot: of its moment, formats/own-cause.h */
};

/* A session's directory to clear */
struct vacuum_dir {
	char *session;
	uint64_t *subbufs; /* [n_cpus] */
	unsigned n_cpus;
	bool has_snapshots;
	uint64_t snapshots, snapshot_bytes; /* that are left */
};

struct files_work {
	struct control *control; /* main thread only */
	int state_fd;		 /* a duplicate */
	char *state_dir;
	char *session; /* "": all */
	char *file;
	bool pin;
	uint64_t max_use;		/* of the session's snapshots, as configured */
	struct retention_limits limits; /* of Vacuum */
	uint64_t waited_usec;		/* of ListFiles, for what is being finished */
	struct fault why;
	/* results */
	struct listed *files;
	size_t n_files;
	struct vacuum_dir *dirs;
	size_t n_dirs;
	uint64_t vacuumed_files, vacuumed_bytes;
	bool snapshot; /* what is open is one */
	int fd;
};

static void files_work_free(struct files_work *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n_files; i++) {
		free(w->files[i].session);
		free(w->files[i].name);
		free(w->files[i].finding);
		strv_free(w->files[i].ids);
	}
	for (size_t i = 0; i < w->n_dirs; i++) {
		free(w->dirs[i].session);
		free(w->dirs[i].subbufs);
	}
	free(w->files);
	free(w->dirs);
	free(w->state_dir);
	free(w->session);
	free(w->file);
	close_p(&w->state_fd);
	close_p(&w->fd);
	free(w);
}

DEFINE_CLEANUP(struct files_work *, files_work_free)

static int files_work_new(struct control *c, const char *session, const char *file,
			  struct files_work **ret)
{
	_cleanup_(files_work_freep) struct files_work *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	w->control = c;
	w->fd = w->state_fd = -EBADF;
	w->state_fd = fcntl(state_root_fd(c->env->root), F_DUPFD_CLOEXEC, 3);
	w->state_dir = strdup(c->env->state_dir);
	w->session = strdup(session);
	w->file = strdup(file);
	if (!w->state_dir || !w->session || !w->file)
		return -ENOMEM;
	if (w->state_fd < 0)
		return -errno;
	*ret = TAKE_PTR(w);
	return 0;
}

/* One path component that hides nothing */
static bool is_plain(const char *name)
{
	return *name && *name != '.' && !strchr(name, '/');
}

static int open_kind(int state_fd, const char *session, bool snapshot)
{
	_cleanup_free_ char *path = strf("%s/%s", session, snapshot ? "snapshot" : "record");

	return path ? io_open_dir_at(state_fd, path) : -ENOMEM;
}

/* --- ListFiles */

#define FINISHING_USEC (2 * USEC_PER_SEC) /* on most disks it is done in some milliseconds */
#define PAUSE_USEC     (20 * 1000)

/* A segment that is on its way to its archive name has none: until it is there, or the call has
 * waited long enough */
static void wait_for_finishing(struct files_work *w, int dir_fd)
{
	for (; w->waited_usec < FINISHING_USEC; w->waited_usec += PAUSE_USEC) {
		_cleanup_(strv_freep) char **names = NULL;

		if (store_list_finishing(dir_fd, &names) < 0 || strv_length(names) == 0)
			return;
		(void)usleep(PAUSE_USEC);
	}
}

/* What a snapshot says of itself */
static void read_own(struct listed *file, int fd, const char *name)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_free_ uint8_t *findings = NULL, *causes = NULL;
	struct own_finding worst;
	size_t size, at = 0;

	if (trace_dat_open_fd(fd, name, &dat, NULL) < 0)
		return;
	if (own_section_read(dat, OWN_FINDINGS, &findings, &size, NULL) >= 0 &&
	    own_finding_take((char *)findings, size, &at, &worst) > 0)
		file->finding = strdup(worst.text);
	if (own_section_read(dat, OWN_CAUSE, &causes, &size, NULL) >= 0)
		(void)own_cause_ids(causes, size, dat->big_endian, &file->ids);
}

static int add_file(struct files_work *w, int dir_fd, const char *session, bool snapshot,
		    const char *name)
{
	_cleanup_close_ int fd = io_open_at(dir_fd, name, O_NOFOLLOW);
	struct listed file = {.snapshot = snapshot}, *more;

	/* Retention may have been quicker; what is no trace.dat is none of ours */
	if (fd < 0 || file_info_read(fd, name, &file.info) < 0)
		return 0;
	more = reallocarray(w->files, w->n_files + 1, sizeof(*more));
	if (!more)
		return -ENOMEM;
	w->files = more;
	file.pinned = store_is_pinned(fd);
	file.session = strdup(session);
	file.name = strdup(name);
	if (snapshot)
		read_own(&file, fd, name);
	more[w->n_files++] = file;
	return file.session && file.name ? 0 : -ENOMEM;
}

static int list_kind(struct files_work *w, const char *session, bool snapshot)
{
	_cleanup_close_ int dir_fd = open_kind(w->state_fd, session, snapshot);
	_cleanup_(strv_freep) char **names = NULL;
	uint64_t usec;
	int r = 0;

	if (dir_fd >= 0 && !snapshot)
		wait_for_finishing(w, dir_fd);
	if (dir_fd >= 0)
		(void)io_list_at(dir_fd, ".", NULL, &names);
	STRV_FOREACH (name, names)
		if (r >= 0 &&
		    (strcmp(*name, STORE_CURRENT) == 0 || store_parse_archive_name(*name, &usec)))
			r = add_file(w, dir_fd, session, snapshot, *name);
	return r;
}

static int work_list(void *data)
{
	struct files_work *w = data;
	_cleanup_(strv_freep) char **names = NULL;
	int r = io_list_at(w->state_fd, ".", is_plain, &names);

	STRV_FOREACH (name, names) {
		if (*w->session && strcmp(w->session, *name) != 0)
			continue;
		for (int snapshot = 0; snapshot < 2 && r >= 0; snapshot++)
			r = list_kind(w, *name, snapshot);
	}
	return r;
}

#define LISTED "ssstttubtsas"

static int append_file(sd_bus_message *reply, const struct files_work *w, const struct listed *f)
{
	const char *kind = f->snapshot ? "snapshot" : "segment";
	_cleanup_free_ char *path = strf("%s/%s/%s/%s", w->state_dir, f->session,
					 f->snapshot ? "snapshot" : "record", f->name);
	int r;

	if (!path)
		return -ENOMEM;
	r = sd_bus_message_open_container(reply, 'r', LISTED);
	if (r >= 0)
		r = sd_bus_message_append(reply, "ssstttubts", f->session, kind, path,
					  f->info.bytes, f->info.start_usec, f->info.end_usec,
					  f->info.n_cpus, f->pinned, f->info.raw_bytes,
					  f->finding ? f->finding : "");
	if (r >= 0)
		r = sd_bus_message_append_strv(reply, f->ids);
	return r < 0 ? r : sd_bus_message_close_container(reply);
}

static void answer_list(struct control_request *request, void *data, int result)
{
	_cleanup_(files_work_freep) struct files_work *w = data;
	_cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

	if (result >= 0)
		result = sd_bus_message_new_method_return(request->call, &reply);
	if (result >= 0)
		result = sd_bus_message_open_container(reply, 'a', "(" LISTED ")");
	for (size_t i = 0; result >= 0 && i < w->n_files; i++)
		result = append_file(reply, w, &w->files[i]);
	if (result >= 0)
		result = sd_bus_message_close_container(reply);
	control_request_reply(request, result, reply, NULL);
}

/* Begin the work of a call */
static int begin(sd_bus_message *m, struct control *c, sd_bus_error *error, struct files_work *w,
		 int (*work)(void *data),
		 void (*answer)(struct control_request *request, void *data, int result))
{
	struct control_request *request;
	int r = control_request_new(c, m, error, &request);

	if (r < 0) {
		files_work_free(w);
		return r;
	}
	return control_work(request, work, answer, w);
}

int control_list_files(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct files_work *w;
	const char *session;
	int r = sd_bus_message_read(m, "s", &session);

	if (r >= 0)
		r = files_work_new(userdata, session, "", &w);
	return r < 0 ? r : begin(m, userdata, error, w, work_list, answer_list);
}

/* --- OpenFile, PinFile */

/*
 * @file: its name alone, "record/NAME", "snapshot/NAME", or the whole path as ListFiles has it;
 * nothing that leads out of the session's directory
 */
static int open_named(struct files_work *w)
{
	const char *name = w->file;
	size_t n = strlen(w->state_dir), k = strlen(w->session);
	bool snapshot = false, kind_given = true;
	int fd = -ENOENT;

	if (!is_plain(w->session))
		return fault_set(&w->why, -EINVAL, "%s cannot be a session",
				 control_shown(w->session).text);
	if (strncmp(name, w->state_dir, n) == 0 && name[n] == '/' &&
	    strncmp(name + n + 1, w->session, k) == 0 && name[n + 1 + k] == '/')
		name += n + k + 2;
	if (strncmp(name, "record/", 7) == 0)
		name += 7;
	else if ((snapshot = strncmp(name, "snapshot/", 9) == 0))
		name += 9;
	else
		kind_given = false;
	if (!is_plain(name))
		return fault_set(&w->why, -EINVAL, "%s is not a file of session %s", w->file,
				 w->session);
	for (int i = 0; i < (kind_given ? 1 : 2) && fd < 0; i++) {
		_cleanup_close_ int dir_fd = -EBADF;

		w->snapshot = kind_given ? snapshot : i == 1;
		dir_fd = open_kind(w->state_fd, w->session, w->snapshot);
		fd = dir_fd < 0 ? dir_fd : io_open_at(dir_fd, name, O_NOFOLLOW);
	}
	if (fd < 0)
		return fault_errno(&w->why, fd, "session %s: cannot open %s", w->session, w->file);
	w->fd = fd;
	return 0;
}

static int work_open(void *data)
{
	struct files_work *w = data;
	struct stat st;
	int r = open_named(w);

	if (r >= 0 && (fstat(w->fd, &st) < 0 || !S_ISREG(st.st_mode)))
		return fault_set(&w->why, -EINVAL, "%s is no regular file", w->file);
	return r;
}

static void answer_open(struct control_request *request, void *data, int result)
{
	_cleanup_(files_work_freep) struct files_work *w = data;

	control_request_answer(request, result, w->why.text, "h", w->fd); /* duplicates it */
}

int control_open_file(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	const char *session, *file;
	struct files_work *w;
	int r = sd_bus_message_read(m, "ss", &session, &file);

	if (r >= 0)
		r = files_work_new(userdata, session, file, &w);
	return r < 0 ? r : begin(m, userdata, error, w, work_open, answer_open);
}

/* STATE/SESSION/KIND/NAME: which session is it? */
static int session_of_path(struct files_work *w)
{
	size_t n = strlen(w->state_dir);
	const char *p = w->file + n + 1, *end;

	if (strncmp(w->file, w->state_dir, n) != 0 || w->file[n] != '/' || !(end = strchr(p, '/')))
		return fault_set(&w->why, -EINVAL, "%s is not a file of a session: not below %s",
				 w->file, w->state_dir);
	free(w->session);
	w->session = strndup(p, (size_t)(end - p));
	return w->session ? 0 : fault_errno(&w->why, -ENOMEM, "cannot pin");
}

static int pin_snapshot(struct files_work *w)
{
	_cleanup_close_ int dir_fd = open_kind(w->state_fd, w->session, true);

	if (dir_fd < 0)
		return fault_errno(&w->why, dir_fd, "session %s: cannot open its snapshots",
				   w->session);
	return retention_pin(dir_fd, w->fd, w->session, session_use_or_default(w->max_use, dir_fd),
			     &w->why);
}

static int work_pin(void *data)
{
	struct files_work *w = data;
	uint64_t usec;
	int r = w->why.error;

	if (r >= 0 && !store_parse_archive_name(strrchr(w->file, '/') + 1, &usec))
		r = fault_set(&w->why, -EINVAL, "%s is not a finished file", w->file);
	if (r >= 0)
		r = work_open(w);
	if (r < 0)
		return r;
	if (w->pin && w->snapshot)
		return pin_snapshot(w);
	r = store_pin(w->fd, w->pin);
	return r < 0 ? fault_errno(&w->why, r, "%s: cannot set the attribute user.flyrec.pinned",
				   w->file)
		     : 0;
}

static void answer_plain(struct control_request *request, void *data, int result)
{
	_cleanup_(files_work_freep) struct files_work *w = data;

	control_request_done(request, result, w->why.text);
}

static uint64_t configured_max_use(const struct manager *m, const char *session)
{
	const struct session *s = manager_find(m, session);
	const struct session_config *config = s ? session_config_in_force(s) : NULL;

	if (!config)
		config = config_find(manager_config(m), session);
	return config ? config->snapshot.max_use : STORAGE_DEFAULT;
}

int control_pin_file(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	struct control *c = userdata;
	struct files_work *w;
	const char *file;
	int pin, r = sd_bus_message_read(m, "sb", &file, &pin);

	if (r >= 0)
		r = files_work_new(c, "", file, &w);
	if (r < 0)
		return r;
	w->pin = pin;
	if (session_of_path(w) >= 0)
		w->max_use = configured_max_use(c->manager, w->session);
	return begin(m, userdata, error, w, work_pin, answer_plain);
}

/* --- Vacuum */

static int vacuum_kind(struct files_work *w, struct vacuum_dir *dir, bool snapshot)
{
	_cleanup_close_ int fd = open_kind(w->state_fd, dir->session, snapshot);
	struct retention_report report = {};
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fault_errno(&w->why, fd, "session %s", dir->session);
	if (!snapshot) {
		report.cpu_subbufs = dir->subbufs;
		report.n_cpus = dir->n_cpus;
	}
	r = retention_apply(fd, &w->limits, &report, &w->why);
	w->vacuumed_files += report.files;
	w->vacuumed_bytes += report.bytes;
	if (snapshot && r >= 0) {
		dir->has_snapshots = true;
		dir->snapshots = report.kept_files;
		dir->snapshot_bytes = report.kept_bytes;
	}
	return r;
}

static int work_vacuum(void *data)
{
	struct files_work *w = data;
	int r = 0;

	for (size_t i = 0; i < w->n_dirs && r >= 0; i++) {
		r = vacuum_kind(w, &w->dirs[i], false);
		if (r >= 0)
			r = vacuum_kind(w, &w->dirs[i], true);
	}
	return r;
}

static void answer_vacuum(struct control_request *request, void *data, int result)
{
	_cleanup_(files_work_freep) struct files_work *w = data;

	for (size_t i = 0; i < w->n_dirs; i++) {
		struct session *s = manager_find(w->control->manager, w->dirs[i].session);

		if (s)
			session_count_evicted(s, w->dirs[i].subbufs, w->dirs[i].n_cpus);
		if (s && w->dirs[i].has_snapshots)
			session_note_snapshots(s, w->dirs[i].snapshots, w->dirs[i].snapshot_bytes);
	}
	control_request_answer(request, result, w->why.text, "ut", (uint32_t)w->vacuumed_files,
			       w->vacuumed_bytes);
}

/* Every directory of a session, also of those that are not configured any more */
static int add_dirs(struct files_work *w, unsigned n_cpus)
{
	_cleanup_(strv_freep) char **names = NULL;
	int r = io_list_at(w->state_fd, ".", is_plain, &names);

	if (r < 0)
		return r;
	w->dirs = calloc(strv_length(names) + 1, sizeof(*w->dirs));
	if (!w->dirs)
		return -ENOMEM;
	STRV_FOREACH (name, names) {
		struct vacuum_dir *dir = &w->dirs[w->n_dirs];

		if (*w->session && strcmp(w->session, *name) != 0)
			continue;
		w->n_dirs++;
		dir->session = strdup(*name);
		dir->subbufs = calloc(n_cpus, sizeof(*dir->subbufs));
		dir->n_cpus = n_cpus;
		if (!dir->session || !dir->subbufs)
			return -ENOMEM;
	}
	return 0;
}

int control_vacuum(sd_bus_message *m, void *userdata, sd_bus_error *error)
{
	_cleanup_(files_work_freep) struct files_work *w = NULL;
	uint64_t max_use, older;
	const char *session;
	int r = sd_bus_message_read(m, "stt", &session, &max_use, &older);

	if (r >= 0)
		r = files_work_new(userdata, session, "", &w);
	if (r < 0)
		return r;
	/* Unlike the limits of the configuration these are for finished files alone */
	w->limits.max_use = max_use == 0 ? UINT64_MAX : max_use;
	w->limits.max_age_usec = older;
	r = add_dirs(w, (unsigned)MAX(sysconf(_SC_NPROCESSORS_CONF), 1));
	if (r >= 0 && w->n_dirs == 0 && *session)
		return control_no_session(userdata, session, error);
	return r < 0 ? r : begin(m, userdata, error, TAKE_PTR(w), work_vacuum, answer_vacuum);
}
