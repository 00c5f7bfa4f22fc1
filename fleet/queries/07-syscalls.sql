-- How long did system calls take?
--   since, until
-- A row for each unit and number of a system call over all hosts, what took most in all first, and the
-- host with the longest one. Only durations are compared, which no two clocks have to agree about.
WITH turns AS (
    SELECT host, session, name, nr, unit, toUnixTimestamp64Nano(ts) AS t,
        leadInFrame(name) OVER w AS next_name, leadInFrame(nr) OVER w AS next_nr,
        leadInFrame(toUnixTimestamp64Nano(ts)) OVER w AS next_t
    FROM flyrec.events
    WHERE name IN ('sys_enter', 'sys_exit')
        AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    WINDOW w AS (PARTITION BY host, session, pid ORDER BY ts, name ROWS BETWEEN CURRENT ROW AND 1 FOLLOWING)
)
SELECT unit, nr, count(*) AS n, round(sum(next_t - t) / 1e6, 3) AS ms,
    round(quantileExactInclusive(0.99)(next_t - t) / 1e3, 1) AS p99_us,
    round(max(next_t - t) / 1e3, 1) AS max_us, argMax(host, (next_t - t, host)) AS max_host
FROM turns
WHERE name = 'sys_enter' AND next_name = 'sys_exit' AND next_nr = nr
GROUP BY unit, nr
ORDER BY ms DESC, unit, nr
LIMIT 1000
