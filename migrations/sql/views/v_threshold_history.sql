-- A row is a version coming into force; ``until`` is when the next one of that app and scorer did, or when the app
-- went back to the default. The app NULL means every app without a threshold of its own.
CREATE OR REPLACE VIEW v_threshold_history AS
SELECT
    a.activated_at AS time,
    a.until,
    t.app,
    c.label AS scorer,
    coalesce(t.app, '*') || '/' || t.version AS threshold_version,
    t.flag_below,
    t.attribute_below,
    t.learned_from,
    a.reason,
    a.activated_by,
    t.note,
    t.curve IS NOT NULL AS has_curve,
    t.scorer_id,
    t.correction IS NOT NULL AS has_correction
FROM (
    SELECT
        taken.*,
        lead(taken.activated_at) OVER (
            PARTITION BY version.app, version.scorer_id ORDER BY taken.activated_at, taken.id
        ) AS until
    FROM threshold_activations taken JOIN thresholds version ON version.id = taken.threshold_id
) AS a
JOIN thresholds t ON t.id = a.threshold_id
JOIN scorers c ON c.id = t.scorer_id
WHERE a.reason <> 'withdrawn';
