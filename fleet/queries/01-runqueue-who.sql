-- In which hosts did tasks of a unit wait longer than 10 ms for a CPU in the minute before a time, and
-- who ran instead?
--   unit, at
-- A row for each host and task that ran on such a CPU meanwhile, who took most first. Times of
-- different hosts are as good as their clocks: worst_at is right to error_us either way.
WITH
mine AS (
    SELECT DISTINCT host, pid FROM flyrec.events
    WHERE name = 'sched_switch' AND unit = {unit:String}
        AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND ts <= {at:DateTime64(9, 'UTC')}
),
-- w: waking, u: wakeup, p: switched out while runnable, o: asleep, i: switched in
steps AS (
    SELECT host, session, target_pid AS pid, cpu, target_comm AS task, toUnixTimestamp64Nano(ts) AS t,
        if(name = 'sched_waking', 'w', 'u') AS k
    FROM flyrec.events
    WHERE name IN ('sched_waking', 'sched_wakeup', 'sched_wakeup_new')
        AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND ts <= {at:DateTime64(9, 'UTC')}
        AND (host, target_pid) IN (SELECT host, pid FROM mine)
    UNION ALL
    SELECT host, session, prev_pid, cpu, prev_comm, toUnixTimestamp64Nano(ts),
        if(bitAnd(prev_state, 255) = 0, 'p', 'o')
    FROM flyrec.events
    WHERE name = 'sched_switch'
        AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND ts <= {at:DateTime64(9, 'UTC')}
        AND prev_pid > 0 AND (host, prev_pid) IN (SELECT host, pid FROM mine)
    UNION ALL
    SELECT host, session, next_pid, cpu, next_comm, toUnixTimestamp64Nano(ts), 'i'
    FROM flyrec.events
    WHERE name = 'sched_switch'
        AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND ts <= {at:DateTime64(9, 'UTC')}
        AND next_pid > 0 AND (host, next_pid) IN (SELECT host, pid FROM mine)
),
turns AS (
    SELECT host, session, pid, cpu, task, t, k,
        lagInFrame(k, 1) OVER w AS k1, lagInFrame(t, 1) OVER w AS t1,
        lagInFrame(k, 2) OVER w AS k2, lagInFrame(t, 2) OVER w AS t2
    FROM steps
    WINDOW w AS (PARTITION BY host, session, pid ORDER BY t, k ROWS BETWEEN 2 PRECEDING AND CURRENT ROW)
),
waits AS (
    SELECT host, session, pid, cpu, task, if(k1 = 'u' AND k2 = 'w', t2, t1) AS since, t AS till
    FROM turns
    WHERE k = 'i' AND k1 IN ('w', 'u', 'p') AND t - if(k1 = 'u' AND k2 = 'w', t2, t1) > 10000000
),
-- A row for each 10 ms that a wait reaches into, so that runs are not compared with all waits of their CPU
pieces AS (
    SELECT host, session, pid, cpu, task, since, till,
        arrayJoin(range(intDiv(since, 10000000), intDiv(till, 10000000) + 1)) AS piece
    FROM waits
),
-- Each run that ended while such a task waited on that CPU; the last one ends where the wait ends
runs AS (
    SELECT pieces.host AS host, pieces.session AS session, pieces.pid AS pid, pieces.task AS task,
        pieces.since AS since, pieces.till AS till, s.comm AS comm, s.unit AS unit, s.t AS t,
        s.t - greatest(pieces.since, coalesce(lagInFrame(s.t) OVER (
            PARTITION BY pieces.host, pieces.session, pieces.pid, pieces.till ORDER BY s.t
            ROWS BETWEEN 1 PRECEDING AND CURRENT ROW), 0)) AS nsec
    FROM (
        SELECT host, session, cpu, toUnixTimestamp64Nano(ts) AS t,
            intDiv(toUnixTimestamp64Nano(ts), 10000000) AS piece,
            if(prev_pid = 0, 'idle', prev_comm) AS comm, if(prev_pid = 0, '', unit) AS unit
        FROM flyrec.events
        WHERE name = 'sched_switch'
            AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND AND ts <= {at:DateTime64(9, 'UTC')}
    ) AS s
    INNER JOIN pieces ON s.host = pieces.host AND s.session = pieces.session AND s.cpu = pieces.cpu
        AND s.piece = pieces.piece
    WHERE s.t > pieces.since AND s.t <= pieces.till
),
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host)
SELECT runs.host AS host, runs.comm AS ran_comm, runs.unit AS ran_unit,
    round(sum(runs.nsec) / 1e6, 3) AS ran_ms,
    count(DISTINCT (runs.pid, runs.till)) AS waits,
    round(max(runs.till - runs.since) / 1e6, 3) AS worst_ms,
    argMax(runs.task, runs.till - runs.since) AS worst_task,
    fromUnixTimestamp64Nano(argMax(runs.since, runs.till - runs.since), 'UTC') AS worst_at,
    coalesce(max(clock_errors.error_us), 4294967295) AS error_us
FROM runs LEFT JOIN clock_errors ON runs.host = clock_errors.host
GROUP BY runs.host, runs.session, runs.comm, runs.unit
HAVING sum(runs.nsec) > 0
ORDER BY ran_ms DESC, host, ran_comm
LIMIT 100
SETTINGS join_use_nulls = 1
