/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * forkstorm - make very many very short tasks, each with a name of its own, to find out for how
 * many of them a trace file knows the name. A task names itself by prctl, or with --exec by being
 * executed under that name, and ends at once.
 */
#include <err.h>
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "tests/tools/common.h"

#define COMM_SIZE 16 /* TASK_COMM_LEN */

struct storm {
	uint64_t count;
	uint64_t jobs; /* tasks alive at a time */
	const char *prefix;
	const char *dir; /* where the names to execute are, NULL: prctl */
	FILE *list;
};

static const char help[] =
	"forkstorm --count=N [--jobs=N] [--prefix=WORD] [--exec] [--list=FILE]\n"
	"Makes N short tasks called WORD0, WORD1, … (WORD: default \"fs-\"), prints how many.\n"
	"--list writes \"PID COMM\" for each.\n";

/* Runs in the new task; the symbolic link goes away with its execution */
static void child(const struct storm *s, const char *name)
{
	char path[PATH_MAX];

	if (!s->dir) {
		(void)prctl(PR_SET_NAME, name);
		_exit(0);
	}
	snprintf(path, sizeof(path), "%s/%s", s->dir, name);
	if (symlink("/proc/self/exe", path) < 0)
		_exit(126);
	execl(path, name, "--unlink", path, NULL);
	_exit(127);
}

static void reap(void)
{
	int status;

	if (wait(&status) < 0)
		err(1, "wait");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		errx(1, "A task ended with wait status 0x%x", (unsigned int)status);
}

static void storm(const struct storm *s)
{
	uint64_t begin = now_nsec(), alive = 0;

	for (uint64_t i = 0; i < s->count; i++) {
		char name[COMM_SIZE];
		pid_t pid;

		if (snprintf(name, sizeof(name), "%s%" PRIu64, s->prefix, i) >= COMM_SIZE)
			errx(2, "Task names have at most %d characters", COMM_SIZE - 1);
		if (alive == s->jobs) {
			reap();
			alive--;
		}
		pid = fork();
		if (pid < 0)
			err(1, "fork");
		if (pid == 0)
			child(s, name);
		alive++;
		if (s->list)
			fprintf(s->list, "%d %s\n", pid, name);
	}
	while (alive--)
		reap();
	printf("tasks=%" PRIu64 " seconds=%.3f\n", s->count,
	       (double)(now_nsec() - begin) / (double)NSEC_PER_SEC);
}

static void storm_exec(struct storm *s)
{
	char dir[] = "/tmp/forkstorm.XXXXXX";

	if (!mkdtemp(dir))
		err(1, "mkdtemp");
	s->dir = dir;
	storm(s);
	if (rmdir(dir) < 0)
		err(1, "Cannot remove %s", dir);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
		{"count", required_argument, NULL, 'n'},  {"jobs", required_argument, NULL, 'j'},
		{"prefix", required_argument, NULL, 'p'}, {"exec", no_argument, NULL, 'x'},
		{"list", required_argument, NULL, 'l'},	  {"unlink", required_argument, NULL, 'u'},
		{"help", no_argument, NULL, 'h'},	  {}};
	struct storm s = {.jobs = 4, .prefix = "fs-"};
	bool exec = false;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		switch (c) {
		case 'n':
			s.count = number_parse("count", optarg);
			break;
		case 'j':
			s.jobs = MAX(number_parse("jobs", optarg), 1);
			break;
		case 'p':
			s.prefix = optarg;
			break;
		case 'x':
			exec = true;
			break;
		case 'l':
			s.list = fopen(optarg, "we");
			if (!s.list)
				err(1, "Cannot open %s", optarg);
			break;
		case 'u':
			return unlink(optarg) < 0;
		case 'h':
			fputs(help, stdout);
			return 0;
		default:
			return 2;
		}
	}
	if (!s.count || optind != argc)
		errx(2, "usage: %s", help);
	/* the children must not write what is buffered */
	setvbuf(stdout, NULL, _IONBF, 0);
	exec ? storm_exec(&s) : storm(&s);
	if (s.list && fclose(s.list) != 0)
		err(1, "Cannot write the list");
	return 0;
}
