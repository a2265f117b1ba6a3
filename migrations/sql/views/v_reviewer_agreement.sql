-- Krippendorff's alpha of the votes, for each pair of reviewers, and for all of an app where both names are NULL. It is
-- NULL where all the votes are the same, since then nothing can be told from chance.
CREATE OR REPLACE VIEW v_reviewer_agreement AS
WITH votes AS (
    SELECT app, interaction_id, revision, sentence_index, reviewer, unsupported::integer AS bad
    FROM v_review_votes
    WHERE is_last
), sentence AS (
    SELECT app, NULL AS reviewer_a, NULL AS reviewer_b, count(*) AS votes, sum(bad) AS bad
    FROM votes
    WHERE bad IS NOT NULL
    GROUP BY app, interaction_id, revision, sentence_index
    HAVING count(*) > 1
    UNION ALL
    SELECT a.app, a.reviewer, b.reviewer, 2, a.bad + b.bad
    FROM votes a JOIN votes b USING (app, interaction_id, revision, sentence_index)
    WHERE a.reviewer < b.reviewer AND a.bad IS NOT NULL AND b.bad IS NOT NULL
)
SELECT
    app,
    reviewer_a,
    reviewer_b,
    count(*) AS sentences,
    count(*) FILTER (WHERE bad IN (0, votes)) AS agreed,
    1 - (sum(votes) - 1) * sum(bad * (votes - bad)::double precision / (votes - 1))
        / nullif(sum(bad) * sum(votes - bad), 0)::double precision AS alpha
FROM sentence
GROUP BY app, reviewer_a, reviewer_b;
