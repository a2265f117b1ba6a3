-- A row is the current answers of one bucket, app, scorer of the last verdict, and generator. Shares and quantiles are NULL of nothing.
CREATE OR REPLACE VIEW v_rates_5m AS
SELECT
    date_bin('00:05:00', coalesce(i.occurred_at, i.received_at, i.stored_at), to_timestamp(0)) AS time,
    i.app,
    c.label AS scorer,
    i.generator_model,
    count(*) AS interactions,
    count(*) FILTER (WHERE v.skip_reason IS NULL) AS scored,
    count(v.skip_reason) AS skipped,
    count(*) FILTER (WHERE v.skip_reason = 'no_passages') AS skipped_no_passages,
    sum(v.n_sentences) AS sentences,
    sum(v.n_scored) AS sentences_scored,
    sum(v.n_flagged) AS sentences_flagged,
    sum(v.n_flagged)::double precision / nullif(sum(v.n_scored), 0) AS flagged_share,
    percentile_cont(0.1) WITHIN GROUP (ORDER BY v.lowest_score) AS lowest_score_p10,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY v.lowest_score) AS lowest_score_p50,
    v.scorer_id
FROM interactions i
JOIN verdicts v ON v.interaction_pk = i.id
JOIN scorers c ON c.id = v.scorer_id
WHERE i.is_current
    AND NOT EXISTS (SELECT FROM verdicts later WHERE later.interaction_pk = v.interaction_pk AND later.id > v.id)
GROUP BY 1, i.app, c.label, i.generator_model, v.scorer_id;
