/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * Three calls deep, with arguments and locals, for test-gdb.sh: main -> middle -> leaf. [N] calls
 * from the first middle() (default 3), then 2 more.
 */
#include <stdio.h>
#include <stdlib.h>

struct record {
	int id;
	double price;
	char name[8];
};

static volatile long sink;

__attribute__((noinline)) long leaf(struct record *r, long k)
{
	sink += r->id * k;
	return sink;
}

__attribute__((noinline)) long middle(struct record *r, int n)
{
	long total = 0;

	for (int k = 0; k < n; k++)
		total += leaf(r, k);
	return total;
}

int main(int argc, char **argv)
{
	struct record first = {3, 1.25, "alpha"}, second = {7, 2.5, "bravo"};
	long a = middle(&first, argc > 1 ? atoi(argv[1]) : 3), b = middle(&second, 2);

	printf("%ld\n", a + b);
	return 0;
}
