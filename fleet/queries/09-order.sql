-- Which host was first? Triggers and findings of all hosts in the order of their times.
--   since, until
-- after_first_ms is by the clocks alone. relation says what they can tell: 'after' the first row where
-- it is of the same host, or both clocks' errors together are less than that; the first row is 'first' if
-- all others are after it; else 'cannot tell'.
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
),
compared AS (
    SELECT host, t, what, text, error_us, first_host, first_error, t - first_t AS later,
        min(if(host = first_host, 1e18, t - first_t - error_us * 1e3)) OVER () AS least_later,
        row_number() OVER (ORDER BY t, host, what, text) AS place
    FROM ordered
)
SELECT fromUnixTimestamp64Nano(t, 'UTC') AS happened_at, error_us, host, what, text,
    round(later / 1e6, 3) AS after_first_ms,
    if(place = 1, if(least_later > first_error * 1e3, 'first', 'cannot tell'),
        if(host = first_host OR later > error_us * 1e3 + first_error * 1e3, 'after', 'cannot tell'))
        AS relation
FROM compared
ORDER BY t, host, what, text
LIMIT 1000
SETTINGS join_use_nulls = 1
