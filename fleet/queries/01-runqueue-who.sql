-- In which hosts did tasks of a unit wait longer than 10 ms for a CPU in the minute before a time, and
-- who ran instead?
--   unit, at
-- A row for each host and task that ran on such a CPU meanwhile, who took most first; of each wait the
-- 16 that took most. Times of different hosts are as good as their clocks: worst_at is right to
-- error_us either way.
WITH
-- Several files may have the same wait; in one that ends before the wait does it is shorter
found AS (
    SELECT host, session, pid, toUnixTimestamp64Nano(ts) AS t, max(nsec) AS waited,
        argMax(comm, (nsec, file)) AS task, argMax(ran_comm, (nsec, file)) AS comms,
        argMax(ran_unit, (nsec, file)) AS units, argMax(ran_nsec, (nsec, file)) AS times
    FROM flyrec.waits
    WHERE kind = 'runqueue' AND unit = {unit:String} AND nsec > 10000000
        AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 60 SECOND
        AND toUnixTimestamp64Nano(ts) + nsec <= toUnixTimestamp64Nano({at:DateTime64(9, 'UTC')})
    GROUP BY host, session, pid, ts
),
ran AS (
    SELECT host, session, pid, t, waited, task, comms, units, times,
        arrayJoin(range(1, length(times) + 1)) AS i
    FROM found
),
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host)
SELECT ran.host AS host, comms[i] AS ran_comm, units[i] AS ran_unit,
    round(sum(times[i]) / 1e6, 3) AS ran_ms,
    count(DISTINCT (pid, t)) AS waits,
    round(max(waited) / 1e6, 3) AS worst_ms,
    argMax(task, waited) AS worst_task,
    fromUnixTimestamp64Nano(argMax(t, waited), 'UTC') AS worst_at,
    coalesce(max(error_us), 4294967295) AS error_us
FROM ran LEFT JOIN clock_errors ON ran.host = clock_errors.host
GROUP BY ran.host, session, comms[i], units[i]
ORDER BY ran_ms DESC, host, ran_comm
LIMIT 100
SETTINGS join_use_nulls = 1
