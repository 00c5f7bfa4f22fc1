/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "analysis/finding-text.h"
#include "analysis/words.h"
#include "basic/confine.h"
#include "basic/fault-point.h"
#include "basic/io.h"
#include "basic/scheduling.h"
#include "basic/strv.h"
#include "daemon/explain/explain.h"
#include "daemon/explain/read-journal.h"
#include "daemon/plumbing/job.h"
#include "daemon/plumbing/journal.h"
#include "daemon/plumbing/timer.h"
#include "formats/own-cause.h"
#include "formats/own-section.h"
#include "writer/file-info.h"

#define FINDINGS_MAX	 5U
#define WAITING_MAX	 16U
#define EXPLAIN_END_MSEC 1000
#define FILE_FD		 3 /* of the process; what it finds goes to standard output */

/* What a process says */
struct said {
	char *text; /* as in the file */
	size_t size;
};

struct explanation {
	struct explanation *next;
	struct explainer *owner; /* main thread only; NULL: is gone */
	struct explain_wish wish;
	char *session, *path, *id, *name;
	int dir_fd;
	explained_t done;
	void *userdata;
	sd_event_source *patience;
	bool late;
	pthread_mutex_t lock; /* of: */
	pid_t pid;	      /* its process, not reaped; 0: none */
	bool ended;	      /* there shall be no more of them */
	struct said findings, journal;
	struct fault journal_why;
};

/* What a process is for */
struct work {
	enum own_kind kind;
	size_t room; /* for what it says */
	unsigned seconds;
	/* As long as it has our rights: opens what it reads instead of the file; or NULL */
	int (*prepare)(void *userdata);
	int (*run)(void *userdata);
	void *userdata;
	/* The process had to read what anybody may have put there. @copy: may be changed */
	int (*check)(char *copy, size_t size);
};

struct explainer {
	sd_event *event;
	struct explanation *list; /* the first one is under way */
	unsigned n;
};

static void explanation_free(struct explanation *e)
{
	(void)sd_event_source_disable_unref(e->patience);
	close_p(&e->dir_fd);
	free(e->session);
	free(e->path);
	free(e->id);
	free(e->name);
	free(e->findings.text);
	free(e->journal.text);
	free(e);
}

/* --- in the process */

static int put_finding(const struct sources_facts *facts, const struct finding *finding,
		       size_t *room)
{
	_cleanup_free_ char *text = finding_text(facts, finding), *line = NULL;
	const struct finding_task *victim = &finding->victim;
	size_t size;

	if (!text)
		return -ENOMEM;
	line = own_finding_put(&(struct own_finding){
		.score = finding->score,
		.start_usec = analysis_usec(facts, finding->from),
		.duration_nsec = finding->nsec,
		.rule = finding_rule_facts(finding->rule)->name,
		.pid = victim->task ? (uint32_t)victim->task->pid : 0,
		.task = victim->comm,
		.unit = finding_unit(victim) ? finding_unit(victim) : "",
		.text = text,
	});
	if (!line)
		return -ENOMEM;
	size = strlen(line);
	if (size > *room)
		return 0;
	*room -= size;
	return io_write_all(STDOUT_FILENO, line, size);
}

static int put_findings(struct findings *findings, const struct sources_facts *facts)
{
	_cleanup_free_ struct finding *list = NULL;
	size_t n, room = OWN_FINDINGS_ROOM;
	int r = findings_list(findings, &list, &n);

	for (size_t i = 0; i < MIN(n, (size_t)FINDINGS_MAX) && r >= 0; i++)
		r = put_finding(facts, &list[i], &room);
	return r;
}

static int analyze(void *userdata)
{
	const struct source source = {"snapshot", FILE_FD};
	const struct event_filter filter = {};
	_cleanup_(who_freep) struct who *who = NULL;
	_cleanup_(findings_freep) struct findings *findings = NULL;
	struct sources_facts facts;
	struct fault why;
	int r = who_new(NULL, NULL, false, &who);

	if (r >= 0)
		r = findings_new(&(struct findings_config){.who = who}, &findings);
	if (r < 0)
		return r;
	r = sources_run(&(struct sources_config){.sources = &source,
						 .n = 1,
						 .filter = &filter,
						 .machine = true,
						 .spans = findings_spans(findings),
						 .who = who},
			&facts, &why);
	return r < 0 ? r : put_findings(findings, &facts);
}

struct journal_window {
	sd_journal *journal;
	uint64_t from_usec, to_usec; /* realtime */
};

static int open_journal(void *userdata)
{
	struct journal_window *window = userdata;
	struct fault why;

	return journal_open(&window->journal, &why);
}

static int put_journal(void *userdata)
{
	const struct journal_window *window = userdata;
	char *text;
	size_t size;
	int r = read_journal(window->journal, window->from_usec, window->to_usec, OWN_JOURNAL_ROOM,
			     &text, &size);

	return r < 0 ? r : io_write_all(STDOUT_FILENO, text, size);
}

/* After this there are the file or what was prepared, standard output and standard error, and
 * nothing else */
static int give_up_rights(const struct work *work, int fd, int output, pid_t parent)
{
	sigset_t none;
	int r = 0, last = STDERR_FILENO;

	(void)sigemptyset(&none);
	(void)signal(SIGALRM, SIG_DFL);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)alarm(work->seconds);
	/* neither is where the other has to go: both are larger */
	if (dup2(output, STDOUT_FILENO) < 0)
		return -errno;
	if (!work->prepare)
		last = dup2(fd, FILE_FD);
	if (last < 0)
		return -errno;
	(void)syscall(SYS_close_range, last + 1, ~0U, 0);
	/* not while it has the instances of all sessions open, which it would keep from being
	 * removed */
	scheduling_idle();
	if (work->prepare)
		r = work->prepare(work->userdata);
	return r < 0 ? r : confine_child(parent);
}

static _Noreturn void process_main(const struct work *work, int fd, int output, pid_t parent)
{
	int r = give_up_rights(work, fd, output, parent);

	if (r >= 0) {
		fault_point("explain-confined");
		r = work->run(work->userdata);
	}
	_exit(r < 0 ? MIN(-r, 125) : 0);
}

/* --- in the job's thread */

/* To descriptors that the process need not care for */
static int above(int *fd)
{
	int moved = fcntl(*fd, F_DUPFD_CLOEXEC, FILE_FD + 1);

	if (moved < 0)
		return -errno;
	close(*fd);
	*fd = moved;
	return 0;
}

static int read_all(int fd, char *buffer, size_t room, size_t *ret)
{
	size_t n = 0;

	for (;;) {
		ssize_t got = read(fd, buffer + n, room - n);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		n += (size_t)got;
		if (got == 0 || n == room)
			break;
	}
	*ret = n;
	return 0;
}

/* What is worth a snapshot mostly is a busy machine: where others want all CPUs it would never get
 * one */
static void hurry(pid_t pid, int fd)
{
	struct pollfd done = {.fd = fd, .events = POLLIN};

	if (poll(&done, 1, EXPLAIN_IDLE_SEC * 1000) == 0)
		scheduling_normal(pid);
}

static void set_pid(struct explanation *e, pid_t pid)
{
	(void)pthread_mutex_lock(&e->lock);
	e->pid = pid;
	(void)pthread_mutex_unlock(&e->lock);
}

static bool has_ended(struct explanation *e)
{
	bool ended;

	(void)pthread_mutex_lock(&e->lock);
	ended = e->ended;
	(void)pthread_mutex_unlock(&e->lock);
	return ended;
}

static int wait_for(struct explanation *e, const struct work *work, pid_t pid, struct fault *why)
{
	siginfo_t info;
	int status, r;

	/* as long as it is a zombie its pid is no other's */
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
		;
	set_pid(e, 0);
	do
		r = waitpid(pid, &status, 0) < 0 ? -errno : 0;
	while (r == -EINTR);
	if (r < 0)
		return fault_errno(why, r, "cannot wait for its process");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM)
		return fault_set(why, -ETIME, "it took more than %u s", work->seconds);
	if (WIFSIGNALED(status))
		return fault_set(why, -EPROTO, "its process died by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status) != 0)
		return fault_errno(why, -WEXITSTATUS(status), "its process failed");
	return 0;
}

static int run_process(struct explanation *e, const struct work *work, int *fd, struct said *said,
		       struct fault *why)
{
	const pid_t self = getpid();
	int ends[2], r, result;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_errno(why, -errno, "cannot make a pipe");
	r = above(fd);
	if (r >= 0)
		r = above(&ends[1]);
	pid = r < 0 ? -1 : fork();
	if (pid == 0)
		process_main(work, *fd, ends[1], self);
	if (r >= 0 && pid < 0)
		r = -errno;
	close(ends[1]);
	if (r < 0) {
		close(ends[0]);
		return fault_errno(why, r, "cannot start a process");
	}
	set_pid(e, pid);
	hurry(pid, ends[0]);
	r = read_all(ends[0], said->text, work->room, &said->size);
	close(ends[0]);
	result = wait_for(e, work, pid, why);
	if (result < 0)
		return result;
	return r < 0 ? fault_errno(why, r, "cannot read what its process writes") : 0;
}

static int check_findings(char *copy, size_t size)
{
	struct own_finding finding;
	size_t at = 0;
	int r;

	do
		r = own_finding_take(copy, size, &at, &finding);
	while (r > 0);
	return r;
}

static int check_journal(char *copy, size_t size)
{
	struct own_journal_head head;
	struct own_journal_line line;
	size_t at = 0;
	int r = own_journal_take_head(copy, size, &at, &head);

	while (r > 0)
		r = own_journal_take(copy, size, &at, &line);
	return r;
}

static int check(const struct work *work, const struct said *said, struct fault *why)
{
	_cleanup_free_ char *copy = strndup(said->text, said->size);

	if (!copy || strlen(copy) != said->size || work->check(copy, said->size) < 0)
		return fault_set(why, -EBADMSG, "its process says what makes no sense");
	return 0;
}

static int write_to_file(const struct explanation *e, const struct work *work,
			 const struct said *said, int fd, struct fault *why)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	int r;

	/* Triggers that join it add to the same section */
	(void)flock(fd, LOCK_EX);
	r = trace_dat_open_fd(fd, e->name, &dat, why);
	if (r >= 0)
		r = own_section_write(dat, work->kind, said->text, said->size, why);
	/* that of another daemon, or of a boot that died, has no room for it */
	if (r == -ENOENT)
		return 0;
	if (r >= 0 && fdatasync(fd) < 0)
		r = fault_errno(why, -errno, "%s: cannot sync", e->name);
	return r;
}

static int do_work(struct explanation *e, const struct work *work, int *fd, struct said *said,
		   struct fault *why)
{
	int r;

	said->text = calloc(1, work->room + 1);
	if (!said->text)
		return fault_errno(why, -ENOMEM, "cannot start a process");
	r = run_process(e, work, fd, said, why);
	if (r >= 0)
		r = check(work, said, why);
	return r < 0 ? r : write_to_file(e, work, said, *fd, why);
}

static int find(struct explanation *e, int *fd, struct fault *why)
{
	static const struct work work = {
		.kind = OWN_FINDINGS,
		.room = OWN_FINDINGS_ROOM,
		.seconds = EXPLAIN_SEC,
		.run = analyze,
		.check = check_findings,
	};

	return do_work(e, &work, fd, &e->findings, why);
}

/* From its first event to its last one, and its triggers, which may be in the journal themselves */
static int find_window(int fd, const char *name, struct journal_window *ret, struct fault *why)
{
	_cleanup_(trace_dat_freep) struct trace_dat *dat = NULL;
	_cleanup_free_ uint8_t *causes = NULL;
	struct file_info info;
	struct own_cause cause;
	size_t size, at = 0;
	int r = file_info_read(fd, strrchr(name, '/') + 1, &info);

	if (r < 0)
		return fault_errno(why, r, "cannot read it");
	*ret = (struct journal_window){
		.from_usec = info.start_usec > 0 ? info.start_usec : UINT64_MAX,
		.to_usec = info.end_usec,
	};
	r = trace_dat_open_fd(fd, name, &dat, why);
	if (r < 0)
		return r;
	if (own_section_read(dat, OWN_CAUSE, &causes, &size, NULL) < 0)
		return 0;
	while (own_cause_take(causes, size, dat->big_endian, &at, &cause) > 0) {
		ret->from_usec = MIN(ret->from_usec, cause.usec);
		ret->to_usec = MAX(ret->to_usec, cause.usec);
	}
	return 0;
}

static int take_journal(struct explanation *e, int *fd, struct fault *why)
{
	struct journal_window window;
	const struct work work = {
		.kind = OWN_JOURNAL,
		.room = OWN_JOURNAL_ROOM,
		.seconds = EXPLAIN_JOURNAL_SEC,
		.prepare = open_journal,
		.run = put_journal,
		.userdata = &window,
		.check = check_journal,
	};
	int r = find_window(*fd, e->name, &window, why);

	if (r < 0)
		return r;
	/* That there is none is said in words, which a process has no way to do */
	r = journal_open(&window.journal, why);
	if (r < 0)
		return r;
	sd_journal_close(TAKE_PTR(window.journal));
	return do_work(e, &work, fd, &e->journal, why);
}

/* The journal last: journald may still be reading what was logged a moment ago */
static int run(void *userdata, struct fault *why)
{
	struct explanation *e = userdata;
	_cleanup_close_ int fd = openat(e->dir_fd, e->name, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	int r = 0;

	if (fd < 0) {
		r = fault_errno(why, -errno, "cannot open it");
		e->journal_why = *why;
		return r;
	}
	if (e->wish.findings)
		r = find(e, &fd, why);
	if (e->wish.journal && !has_ended(e))
		(void)take_journal(e, &fd, &e->journal_why);
	return r;
}

/* --- in the main thread */

static void tell(const struct explanation *e, int result, const struct fault *why)
{
	const struct said *said = &e->findings;
	_cleanup_free_ char *copy =
		result < 0 || !said->text ? NULL : strndup(said->text, said->size);
	struct own_finding worst;
	size_t at = 0;
	const bool any = copy && own_finding_take(copy, said->size, &at, &worst) > 0;

	e->done(e->userdata,
		&(struct explained){
			.session = e->session,
			.path = e->path,
			.id = e->id,
			.worst = any ? &worst : NULL,
			.result = result,
			.why = why,
			.was_late = e->late,
			.analyzed = e->wish.findings,
			.journal_why = e->journal_why.error < 0 ? &e->journal_why : NULL,
		});
}

static int on_late(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct explanation *e = userdata;

	e->late = true;
	e->patience = sd_event_source_disable_unref(e->patience);
	e->done(e->userdata, &(struct explained){
				     .session = e->session,
				     .path = e->path,
				     .id = e->id,
				     .result = EXPLAINED_LATER,
			     });
	return 0;
}

static void begin_next(struct explainer *explainer);

static void on_done(void *userdata, int result, const struct fault *why)
{
	struct explanation *e = userdata;
	struct explainer *explainer = e->owner;

	if (explainer) {
		explainer->list = e->next;
		explainer->n--;
		tell(e, result, why);
		begin_next(explainer);
	}
	explanation_free(e);
}

static void begin_next(struct explainer *explainer)
{
	while (explainer->list) {
		struct explanation *e = explainer->list;
		struct fault why;
		int r = job_start(explainer->event, run, on_done, e);

		if (r >= 0)
			return;
		explainer->list = e->next;
		explainer->n--;
		(void)fault_errno(&why, r, "cannot start a thread");
		tell(e, r, &why);
		explanation_free(e);
	}
}

int explainer_new(sd_event *event, struct explainer **ret)
{
	struct explainer *explainer = calloc(1, sizeof(*explainer));

	if (!explainer)
		return -ENOMEM;
	explainer->event = event;
	*ret = explainer;
	return 0;
}

/* At idle priority, on a busy machine, it would have the file open for seconds more */
static void end_process(struct explanation *e)
{
	struct pollfd ended = {.fd = -1, .events = POLLIN};

	(void)pthread_mutex_lock(&e->lock);
	e->ended = true;
	if (e->pid > 0) {
		ended.fd = (int)syscall(SYS_pidfd_open, e->pid, 0);
		scheduling_normal(e->pid);
		(void)kill(e->pid, SIGKILL);
	}
	(void)pthread_mutex_unlock(&e->lock);
	if (ended.fd >= 0) {
		(void)poll(&ended, 1, EXPLAIN_END_MSEC);
		close(ended.fd);
	}
}

struct explainer *explainer_free(struct explainer *explainer)
{
	struct fault why;
	bool first = true;

	if (!explainer)
		return NULL;
	(void)fault_set(&why, -ECANCELED, "flyrecd is stopping");
	if (explainer->list)
		end_process(explainer->list);
	while (explainer->list) {
		struct explanation *e = explainer->list;

		explainer->list = e->next;
		e->done(e->userdata, &(struct explained){.session = e->session,
							 .path = e->path,
							 .id = e->id,
							 .result = why.error,
							 .why = &why,
							 .was_late = e->late,
							 .analyzed = e->wish.findings});
		e->patience = sd_event_source_disable_unref(e->patience);
		/* that of a job that runs is its own */
		e->owner = NULL;
		if (!first)
			explanation_free(e);
		first = false;
	}
	free(explainer);
	return NULL;
}

int explainer_add(struct explainer *explainer, const struct explain_wish *wish, int dir_fd,
		  const char *name, const char *session, const char *path, const char *id,
		  explained_t done, void *userdata)
{
	struct explanation *e, **end = &explainer->list;

	if (explainer->n == WAITING_MAX)
		return -EBUSY;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	*e = (struct explanation){
		.owner = explainer,
		.wish = *wish,
		.session = strdup(session),
		.path = strdup(path),
		.id = strdup(id),
		.name = strdup(name),
		.dir_fd = fcntl(dir_fd, F_DUPFD_CLOEXEC, FILE_FD + 1),
		.lock = PTHREAD_MUTEX_INITIALIZER,
		.done = done,
		.userdata = userdata,
	};
	if (!e->session || !e->path || !e->id || !e->name || e->dir_fd < 0 ||
	    timer_arm(explainer->event, &e->patience, EXPLAIN_WAIT_SEC * USEC_PER_SEC, on_late, e) <
		    0) {
		explanation_free(e);
		return -ENOMEM;
	}
	while (*end)
		end = &(*end)->next;
	*end = e;
	if (explainer->n++ == 0)
		begin_next(explainer);
	return 0;
}
