/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A query's tables as virtual tables of SQLite (sqlite.org/vtab.html): which conditions a scan goes
 * by, in which order rows come, and rows brought together (groups.h). They need no CREATE TABLE.
 * One thread.
 */
#pragma once

#include "query/query.h"

struct sqlite3;

/**
 * vtab_attach() - a connection gets the tables, in the place of those of the same name
 * @query: lives as long as the connection has them
 * Return: of SQLite.
 */
int vtab_attach(struct query *query, struct sqlite3 *db);

/**
 * vtab_sql() - the CREATE TABLE that would make one of the tables
 * Return: 0 or negative errno; @ret: malloc'ed.
 */
int vtab_sql(struct query *query, size_t i, char **ret, struct fault *why);
