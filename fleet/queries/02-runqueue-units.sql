-- How long did the tasks of each unit wait for a CPU?
--   since, until
-- A row for each host and unit, the most that took more than 10 ms first. Durations are of one host's
-- clock each, which hosts do not have to agree about.
WITH
steps AS (
    SELECT host, session, target_pid AS pid, '' AS unit, toUnixTimestamp64Nano(ts) AS t,
        if(name = 'sched_waking', 'w', 'u') AS k
    FROM flyrec.events
    WHERE name IN ('sched_waking', 'sched_wakeup', 'sched_wakeup_new')
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    UNION ALL
    SELECT host, session, prev_pid, unit, toUnixTimestamp64Nano(ts),
        if(bitAnd(prev_state, 255) = 0, 'p', 'o')
    FROM flyrec.events
    WHERE name = 'sched_switch' AND prev_pid > 0
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    UNION ALL
    SELECT host, session, next_pid, '', toUnixTimestamp64Nano(ts), 'i'
    FROM flyrec.events
    WHERE name = 'sched_switch' AND next_pid > 0
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
),
-- Whose a task is says the event that switches it out
turns AS (
    SELECT host, session, t, k, leadInFrame(unit) OVER w AS unit,
        lagInFrame(k, 1) OVER w AS k1, lagInFrame(t, 1) OVER w AS t1,
        lagInFrame(k, 2) OVER w AS k2, lagInFrame(t, 2) OVER w AS t2
    FROM steps
    WINDOW w AS (PARTITION BY host, session, pid ORDER BY t, k ROWS BETWEEN 2 PRECEDING AND 1 FOLLOWING)
),
waits AS (
    SELECT host, session, unit, t - if(k1 = 'u' AND k2 = 'w', t2, t1) AS nsec
    FROM turns
    WHERE k = 'i' AND k1 IN ('w', 'u', 'p')
)
SELECT host, session, coalesce(unit, '') AS of_unit, count(*) AS n,
    round(quantileExactInclusive(0.5)(nsec) / 1e3, 1) AS p50_us,
    round(quantileExactInclusive(0.99)(nsec) / 1e3, 1) AS p99_us,
    round(max(nsec) / 1e3, 1) AS max_us, countIf(nsec > 10000000) AS over_10ms
FROM waits
GROUP BY host, session, of_unit
ORDER BY over_10ms DESC, max_us DESC, host, session, of_unit
LIMIT 1000
