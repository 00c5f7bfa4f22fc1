-- Which host was first? Triggers and findings of all hosts in the order of their times.
--   since, until
-- after_first_ms is by the clocks alone. relation says what they can tell: 'first', 'after' where both
-- clocks' errors together are less than that, else 'cannot tell'.
WITH
clock_errors AS (SELECT host, max(maxerror) AS error_us FROM flyrec.clocks GROUP BY host),
seen AS (
    SELECT DISTINCT host, toUnixTimestamp64Nano(ts) AS t, reason AS what, text FROM flyrec.snapshots
    WHERE reason != '' AND ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
    UNION ALL
    SELECT DISTINCT host, toUnixTimestamp64Nano(ts), rule, text FROM flyrec.findings
    WHERE ts BETWEEN {since:DateTime64(9, 'UTC')} AND {until:DateTime64(9, 'UTC')}
),
told AS (
    SELECT seen.host AS host, t, what, text, coalesce(error_us, 4294967295) AS error_us
    FROM seen LEFT JOIN clock_errors ON seen.host = clock_errors.host
),
ordered AS (
    SELECT host, t, what, text, error_us,
        first_value(t) OVER w AS first_t, first_value(host) OVER w AS first_host,
        first_value(error_us) OVER w AS first_error
    FROM told
    WINDOW w AS (ORDER BY t, host, what, text ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW)
)
SELECT fromUnixTimestamp64Nano(t, 'UTC') AS happened_at, error_us, host, what, text,
    round((t - first_t) / 1e6, 3) AS after_first_ms,
    if(t = first_t AND host = first_host, 'first',
        if(host = first_host OR t - first_t > error_us * 1e3 + first_error * 1e3, 'after', 'cannot tell'))
        AS relation
FROM ordered
ORDER BY t, host, what, text
LIMIT 1000
SETTINGS join_use_nulls = 1
