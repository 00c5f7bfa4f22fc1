-- What ran on each CPU of all hosts at one moment?
--   at
-- certain is 0 where the host's clock may be wrong by more than that task had been running, or went on
-- to run: then it may have been another one. Looks back, and ahead, ten seconds.
WITH
switches AS (
    SELECT host, session, cpu, next_comm, next_pid, toUnixTimestamp64Nano(ts) AS t,
        toUnixTimestamp64Nano({at:DateTime64(9, 'UTC')}) AS moment
    FROM flyrec.events
    WHERE name = 'sched_switch' AND ts > {at:DateTime64(9, 'UTC')} - INTERVAL 10 SECOND
        AND ts <= {at:DateTime64(9, 'UTC')} + INTERVAL 10 SECOND
),
cpus AS (
    SELECT host, session, cpu, max(moment) AS asked,
        argMax(next_comm, if(t <= moment, t, 0)) AS comm, argMax(next_pid, if(t <= moment, t, 0)) AS pid,
        max(if(t <= moment, t, 0)) AS began, min(if(t > moment, t, 9223372036854775807)) AS ended
    FROM switches
    GROUP BY host, session, cpu
),
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host)
SELECT cpus.host AS host, session, cpu, if(pid = 0, 'idle', comm) AS task, pid,
    round((asked - began) / 1e6, 3) AS ran_for_ms, coalesce(error_us, 4294967295) AS error_us,
    if(asked - began > coalesce(error_us, 4294967295) * 1e3
        AND ended - asked > coalesce(error_us, 4294967295) * 1e3, 1, 0) AS certain
FROM cpus LEFT JOIN clock_errors ON cpus.host = clock_errors.host
WHERE began > 0
ORDER BY host, session, cpu
SETTINGS join_use_nulls = 1
