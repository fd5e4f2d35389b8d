CREATE TABLE schema_version (version INTEGER NOT NULL);
CREATE TABLE samples (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	split VARCHAR NOT NULL, 
	fields JSON NOT NULL, 
	label INTEGER NOT NULL, 
	label_text VARCHAR NOT NULL, 
	cluster VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE results (
	sample_id VARCHAR NOT NULL, 
	outcome VARCHAR NOT NULL, 
	reason TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	rung VARCHAR NOT NULL, 
	semantic_status VARCHAR NOT NULL, 
	semantic JSON, 
	updated JSON, 
	original_label VARCHAR NOT NULL, 
	ended_at VARCHAR NOT NULL, 
	freshness JSON, 
	kept_from VARCHAR, 
	cause VARCHAR DEFAULT '' NOT NULL, 
	PRIMARY KEY (sample_id)
);
CREATE INDEX results_by_outcome ON results (outcome);
CREATE TABLE facts (
	sample_id VARCHAR NOT NULL, 
	ord INTEGER NOT NULL, 
	field VARCHAR NOT NULL, 
	"before" JSON, 
	"after" JSON NOT NULL, 
	evidence_id VARCHAR NOT NULL, 
	quote TEXT NOT NULL, 
	PRIMARY KEY (sample_id, ord)
);
CREATE TABLE evidence (
	id VARCHAR NOT NULL, 
	body JSON NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE kept_evidence (
	id VARCHAR NOT NULL, 
	body JSON NOT NULL, 
	snippet_sha256 VARCHAR NOT NULL, 
	PRIMARY KEY (id)
);
CREATE TABLE searches (
	sample_id VARCHAR NOT NULL, 
	asked JSON NOT NULL, 
	events JSON NOT NULL, 
	need TEXT NOT NULL, 
	dealt JSON, 
	passages JSON, 
	PRIMARY KEY (sample_id)
);
CREATE TABLE steps (
	sample_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	node VARCHAR NOT NULL, 
	started_at VARCHAR NOT NULL, 
	seconds FLOAT NOT NULL, 
	error TEXT NOT NULL, 
	detail JSON NOT NULL, 
	PRIMARY KEY (sample_id, attempt, node)
);
CREATE TABLE verdicts (
	sample_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	node VARCHAR NOT NULL, 
	name VARCHAR NOT NULL, 
	passed BOOLEAN NOT NULL, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (sample_id, attempt, node, name)
);
CREATE TABLE calls (
	sample_id VARCHAR NOT NULL, 
	attempt INTEGER NOT NULL, 
	node VARCHAR NOT NULL, 
	"key" VARCHAR NOT NULL, 
	role VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	draw INTEGER NOT NULL, 
	cached BOOLEAN NOT NULL, 
	prompt_tokens INTEGER NOT NULL, 
	cached_tokens INTEGER DEFAULT '0' NOT NULL, 
	completion_tokens INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	method VARCHAR DEFAULT '' NOT NULL, 
	tries TEXT DEFAULT '' NOT NULL, 
	error TEXT DEFAULT '' NOT NULL, 
	usd FLOAT, 
	PRIMARY KEY (sample_id, attempt, node, "key")
);
CREATE INDEX calls_by_key ON calls ("key");
CREATE TABLE bad_rows (
	seq INTEGER NOT NULL, 
	file VARCHAR NOT NULL, 
	line INTEGER NOT NULL, 
	reason TEXT NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE predictions (
	target VARCHAR NOT NULL, 
	source VARCHAR NOT NULL, 
	template INTEGER NOT NULL, 
	sample_id VARCHAR NOT NULL, 
	answer VARCHAR NOT NULL, 
	kind VARCHAR NOT NULL, 
	reason TEXT NOT NULL, 
	version VARCHAR NOT NULL, 
	"right" BOOLEAN, 
	score FLOAT, 
	PRIMARY KEY (target, source, template, sample_id)
)
 WITHOUT ROWID

;
CREATE TABLE stages (
	name VARCHAR NOT NULL, 
	ended_at VARCHAR NOT NULL, 
	detail JSON NOT NULL, 
	PRIMARY KEY (name)
);
CREATE TABLE heartbeat (
	id INTEGER NOT NULL, 
	pid INTEGER NOT NULL, 
	host VARCHAR NOT NULL, 
	at VARCHAR NOT NULL, 
	in_flight JSON NOT NULL, 
	pulse JSON, 
	PRIMARY KEY (id)
);
CREATE TABLE fetches (
	seq INTEGER NOT NULL, 
	at VARCHAR NOT NULL, 
	backend VARCHAR NOT NULL, 
	queries INTEGER NOT NULL, 
	found INTEGER NOT NULL, 
	bytes_billed INTEGER NOT NULL, 
	cost_usd FLOAT NOT NULL, 
	notes JSON NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE train_items (
	seq INTEGER NOT NULL, 
	id VARCHAR NOT NULL, 
	split VARCHAR NOT NULL, 
	fields JSON NOT NULL, 
	label INTEGER NOT NULL, 
	label_text VARCHAR NOT NULL, 
	cluster VARCHAR DEFAULT '' NOT NULL, 
	status VARCHAR NOT NULL, 
	semantic JSON, 
	reason TEXT NOT NULL, 
	PRIMARY KEY (seq), 
	UNIQUE (id)
);
CREATE TABLE listing (
	seq INTEGER NOT NULL, 
	sample VARCHAR NOT NULL, 
	label VARCHAR NOT NULL, 
	outcome VARCHAR NOT NULL, 
	cause VARCHAR NOT NULL, 
	attempts INTEGER NOT NULL, 
	rung VARCHAR NOT NULL, 
	semantic_status VARCHAR NOT NULL, 
	kept_from VARCHAR, 
	ended_at VARCHAR NOT NULL, 
	calls INTEGER NOT NULL, 
	billed_calls INTEGER NOT NULL, 
	priced INTEGER NOT NULL, 
	usd FLOAT NOT NULL, 
	tokens INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE INDEX listing_by_kind ON listing (outcome, cause, label, attempts, rung, semantic_status, kept_from);
CREATE TABLE sought (
	seq INTEGER NOT NULL, 
	text TEXT NOT NULL, 
	PRIMARY KEY (seq)
);
CREATE TABLE call_sums (
	role VARCHAR NOT NULL, 
	model VARCHAR NOT NULL, 
	cached BOOLEAN NOT NULL, 
	calls INTEGER NOT NULL, 
	prompt_tokens INTEGER NOT NULL, 
	cached_tokens INTEGER NOT NULL, 
	completion_tokens INTEGER NOT NULL, 
	usd FLOAT NOT NULL, 
	priced INTEGER NOT NULL, 
	PRIMARY KEY (role, model, cached)
);
CREATE TABLE step_sums (
	node VARCHAR NOT NULL, 
	steps INTEGER NOT NULL, 
	seconds FLOAT NOT NULL, 
	errors INTEGER NOT NULL, 
	PRIMARY KEY (node)
);
CREATE TABLE verdict_sums (
	name VARCHAR NOT NULL, 
	passed INTEGER NOT NULL, 
	failed INTEGER NOT NULL, 
	PRIMARY KEY (name)
);
CREATE VIRTUAL TABLE sought_index
    USING fts5(text, content='', columnsize=0, detail=none, tokenize='trigram');
CREATE TABLE unindexed (seq INTEGER PRIMARY KEY);
CREATE TABLE correctness (
	target VARCHAR NOT NULL, 
	seq INTEGER NOT NULL, 
	original_right INTEGER NOT NULL, 
	original_wrong INTEGER NOT NULL, 
	semantic_right INTEGER NOT NULL, 
	semantic_wrong INTEGER NOT NULL, 
	updated_right INTEGER NOT NULL, 
	updated_wrong INTEGER NOT NULL, 
	control_right INTEGER NOT NULL, 
	control_wrong INTEGER NOT NULL, 
	PRIMARY KEY (target, seq)
)
 WITHOUT ROWID

;
CREATE TABLE correctness_sums (
	target VARCHAR NOT NULL, 
	original_right INTEGER NOT NULL, 
	original_wrong INTEGER NOT NULL, 
	semantic_right INTEGER NOT NULL, 
	semantic_wrong INTEGER NOT NULL, 
	updated_right INTEGER NOT NULL, 
	updated_wrong INTEGER NOT NULL, 
	control_right INTEGER NOT NULL, 
	control_wrong INTEGER NOT NULL, 
	samples INTEGER NOT NULL, 
	PRIMARY KEY (target, original_right, original_wrong, semantic_right, semantic_wrong, updated_right, updated_wrong, control_right, control_wrong)
);
INSERT INTO "schema_version" VALUES (13);
INSERT INTO "call_sums" VALUES ('extractor', 'replay:extractor.jsonl', 0, 12, 19013, 0, 4784, 0.0, 12);
INSERT INTO "calls" VALUES ('quiz-02', 0, 'extract', '13ff687f353d4b8e2b0784a1bc1a178cf24ac288ecc69616ac18c1fc6e2f55ca', 'extractor', 'replay:extractor.jsonl', 0, 0, 1580, 0, 335, 8.50395919987931847572e-02, 'json_schema', '', '', 0.0);
INSERT INTO "evidence" VALUES ('fe2859ad6751e93b', '{"id": "fe2859ad6751e93b", "url": "https://www.independent.co.uk/sport/winter-olympics/norway-gold-medals-olympics-dale-skjevdal-biathlon-b2924477.html", "domain": "independent.co.uk", "title": "Norway''s 17th gold medal breaks its own record at the Winter Games", "snippet": "Norway has won more gold medals at one edition of the Winter Olympics than any country before. Johannes Dale-Skjevdal secured the 17th in Milan and Cortina d''Ampezzo on Friday; the record had been 16, and it was Norway''s own. On Saturday last week Lucas Pinheiro Braathen won the giant slalom and became the first athlete from South America with a medal at Winter Games. On Thursday Oriol Cardona took the sprint in ski mountaineering, Spain''s first gold medal in winter for 54 years.", "published_at": "2026-02-20T12:00:00Z", "published_precision": "exact", "language": "en", "entities": [], "cluster": "", "origin": "20260601000000.gal.json:203", "instruction_like": false, "source": "gdelt", "licence": "Apache-2.0", "depth": "description", "text_sha256": ""}');
INSERT INTO "facts" VALUES ('quiz-02', 0, 'question', '{"head": "Summer Olympic Games of 2016", "relation": "took place in", "tail": "Rio de Janeiro"}', '{"head": "Moody''s", "relation": "has lowered to Ba1 its rating of", "tail": "the city of Budapest"}', 'cebf092ecf34101f', 'The agency Moody''s has lowered its rating of the city of Budapest to Ba1');
INSERT INTO "heartbeat" VALUES (1, 29911, 'vm', '2026-11-28T09:18:37.874+00:00', '{}', '{"stage": "report", "done": 0, "total": 0, "per_minute": null, "left_s": null, "ends_at": "", "cost": null, "idle_s": 14.5, "sent": 0, "roles": [{"role": "label_judge", "model": "replay:label_judge.jsonl", "answers": 57, "mean_s": 0.003}, {"role": "fact_judge", "model": "replay:fact_judge.jsonl", "answers": 11, "mean_s": 0.003}, {"role": "replacer", "model": "replay:replacer.jsonl", "answers": 12, "mean_s": 0.002}, {"role": "composer", "model": "replay:composer.jsonl", "answers": 2, "mean_s": 0.002}, {"role": "extractor", "model": "replay:extractor.jsonl", "answers": 12, "mean_s": 0.001}], "waits": [], "spend": {"billed_usd": 0.0, "reserved_usd": 0.0, "unpriced": 0, "budget_usd": null}, "workers": []}');
INSERT INTO "listing" VALUES (1, 'quiz-02', 'B', 'accepted', '', 1, 'structure', 'reworded', NULL, '2026-11-28T09:18:17.239+00:00', 8, 8, 8, 0.0, 9894, 2.83423599999999975551e+00);
INSERT INTO "results" VALUES ('quiz-16', 'no_knowledge', 'The question must ask for a hurricane by name, and no report here names a hurricane or any other storm.', 1, 'structure', 'reworded', '{"question": "On 20 September 2017, which hurricane came ashore in Puerto Rico?", "A": "Harvey", "B": "Jose", "C": "Irma", "D": "Maria"}', 'null', 'D', '2026-11-28T09:18:17.124+00:00', 'null', NULL, 'no news on offer fits');
INSERT INTO "samples" VALUES (1, 'quiz-02', 'test', '{"question": "In which city did the Summer Olympic Games of 2016 take place?", "A": "Tokyo", "B": "Rio de Janeiro", "C": "Madrid", "D": "Chicago"}', 1, 'B', '');
INSERT INTO "sought" VALUES (1, 'quiz-02
In which city did the Summer Olympic Games of 2016 take place?
Tokyo
Rio de Janeiro
Madrid
Chicago

Which city was host to the 2016 Summer Olympic Games?
Tokyo
Rio de Janeiro
Madrid
Chicago
For which city did Moody''s lower the rating to Ba1 in December 2025?
Warsaw
Budapest
Prague
Sofia');
INSERT INTO "stages" VALUES ('assemble', '2026-11-28T09:18:23.221+00:00', '{"updated": 10, "semantic": 12, "provenance": 15}');
INSERT INTO "step_sums" VALUES ('extract', 12, 2.38101000000000029288e+00, 0);
INSERT INTO "steps" VALUES ('quiz-02', 0, 'extract', '2026-11-28T09:18:13.416056+00:00', 0.806234, '', '{"extraction": {"entities": [{"span": "Summer Olympic Games of 2016", "field": "question", "kind": "named", "type": "event", "query_name": "2016 Summer Olympics", "aliases": ["Rio 2016", "Rio Olympics"]}, {"span": "Tokyo", "field": "A", "kind": "named", "type": "place", "query_name": "Tokyo", "aliases": []}, {"span": "Rio de Janeiro", "field": "B", "kind": "named", "type": "place", "query_name": "Rio de Janeiro", "aliases": ["Rio"]}, {"span": "Madrid", "field": "C", "kind": "named", "type": "place", "query_name": "Madrid", "aliases": []}, {"span": "Chicago", "field": "D", "kind": "named", "type": "place", "query_name": "Chicago", "aliases": []}], "triples": [{"head": "Summer Olympic Games of 2016", "relation": "took place in", "tail": "Rio de Janeiro", "field": "question"}], "locked": [{"span": "which city", "field": "question", "why": "label_carrier"}], "sensitive": [], "queries": ["Summer Olympics host city", "Rio de Janeiro Olympic Games", "Olympic Games opening ceremony"], "siblings": ["Winter Olympics Milan Cortina", "World Athletics Championships Tokyo", "Asian Games host city"], "structures": ["host city named", "Games held in"], "need": "news that a large event took place, or opened, in a named city", "deixis_only": false}, "policy": "allow", "rewrite": {"fields": {"question": "Which city was host to the 2016 Summer Olympic Games?", "A": "Tokyo", "B": "Rio de Janeiro", "C": "Madrid", "D": "Chicago"}, "reworded": true, "declined": false, "reason": "The name of the Games, the year and \"which city\" had to stay."}, "route": "judge_original"}');
INSERT INTO "verdict_sums" VALUES ('original_label', 12, 0);
INSERT INTO "verdicts" VALUES ('quiz-02', 0, 'judge_original', 'original_label', 1, 'B (high confidence, by ''known'')');
CREATE TRIGGER keep_0 AFTER INSERT ON samples BEGIN 
    INSERT INTO listing VALUES (NEW.seq, NEW.id, NEW.label_text, 'pending', '', 0, '', '', NULL, '', 0, 0, 0, 0.0, 0, 0.0);
    INSERT INTO sought VALUES (NEW.seq, NEW.id || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(NEW.fields)), ''));
 END;
CREATE TRIGGER keep_1 AFTER INSERT ON results BEGIN 
    DELETE FROM listing WHERE seq = (SELECT seq FROM samples WHERE id = NEW.sample_id);
    
    INSERT INTO listing
    SELECT
        s.seq, s.id, s.label_text, r.outcome, r.cause, r.attempts, r.rung, r.semantic_status,
        r.kept_from, r.ended_at,
        count(c.key), count(c.key) FILTER (WHERE NOT c.cached),
        count(c.usd) FILTER (WHERE NOT c.cached),
        coalesce(sum(CASE WHEN NOT c.cached THEN c.usd END), 0.0),
        coalesce(sum(CASE WHEN NOT c.cached THEN c.prompt_tokens + c.completion_tokens END), 0),
        coalesce((SELECT sum(seconds) FROM steps WHERE sample_id = s.id), 0.0)
    FROM results r
    JOIN samples s ON s.id = r.sample_id
    LEFT JOIN calls c ON c.sample_id = r.sample_id
    WHERE r.sample_id = NEW.sample_id
    GROUP BY s.seq, r.sample_id
;
    UPDATE sought
    SET text = (SELECT s.id || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(s.fields)), '')
    || char(10) || r.reason || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(r.semantic)), '')
    || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(r.updated)), '')
 FROM samples s JOIN results r ON r.sample_id = s.id
                WHERE s.id = NEW.sample_id)
    WHERE seq = (SELECT seq FROM samples WHERE id = NEW.sample_id);

    INSERT INTO unindexed SELECT seq FROM samples
    WHERE id = NEW.sample_id AND seq NOT IN (SELECT seq FROM unindexed);
 END;
CREATE TRIGGER keep_2 AFTER UPDATE ON results BEGIN 
    INSERT INTO sought_index (sought_index, rowid, text)
    SELECT 'delete', seq, text FROM sought
    WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id) AND seq NOT IN (SELECT seq FROM unindexed);

    DELETE FROM listing WHERE seq = (SELECT seq FROM samples WHERE id = NEW.sample_id);
    
    INSERT INTO listing
    SELECT
        s.seq, s.id, s.label_text, r.outcome, r.cause, r.attempts, r.rung, r.semantic_status,
        r.kept_from, r.ended_at,
        count(c.key), count(c.key) FILTER (WHERE NOT c.cached),
        count(c.usd) FILTER (WHERE NOT c.cached),
        coalesce(sum(CASE WHEN NOT c.cached THEN c.usd END), 0.0),
        coalesce(sum(CASE WHEN NOT c.cached THEN c.prompt_tokens + c.completion_tokens END), 0),
        coalesce((SELECT sum(seconds) FROM steps WHERE sample_id = s.id), 0.0)
    FROM results r
    JOIN samples s ON s.id = r.sample_id
    LEFT JOIN calls c ON c.sample_id = r.sample_id
    WHERE r.sample_id = NEW.sample_id
    GROUP BY s.seq, r.sample_id
;
    UPDATE sought
    SET text = (SELECT s.id || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(s.fields)), '')
    || char(10) || r.reason || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(r.semantic)), '')
    || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(r.updated)), '')
 FROM samples s JOIN results r ON r.sample_id = s.id
                WHERE s.id = NEW.sample_id)
    WHERE seq = (SELECT seq FROM samples WHERE id = NEW.sample_id);

    INSERT INTO unindexed SELECT seq FROM samples
    WHERE id = NEW.sample_id AND seq NOT IN (SELECT seq FROM unindexed);
 END;
CREATE TRIGGER keep_3 AFTER DELETE ON results BEGIN 
    INSERT INTO sought_index (sought_index, rowid, text)
    SELECT 'delete', seq, text FROM sought
    WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id) AND seq NOT IN (SELECT seq FROM unindexed);

    DELETE FROM listing WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id);
    INSERT INTO listing
    SELECT seq, id, label_text, 'pending', '', 0, '', '', NULL, '', 0, 0, 0, 0.0, 0, 0.0 FROM samples WHERE id = OLD.sample_id;
    UPDATE sought
    SET text = (SELECT s.id || char(10) || coalesce((SELECT group_concat(value, char(10)) FROM json_each(s.fields)), '') FROM samples s WHERE s.id = OLD.sample_id)
    WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id);
DELETE FROM unindexed WHERE seq = (SELECT seq FROM samples WHERE id = OLD.sample_id); END;
CREATE TRIGGER keep_4 AFTER INSERT ON calls BEGIN 
    INSERT INTO call_sums
    SELECT
        NEW.role, NEW.model, NEW.cached, 1, NEW.prompt_tokens, NEW.cached_tokens,
        NEW.completion_tokens, coalesce(NEW.usd, 0.0), CASE WHEN NEW.usd IS NULL THEN 0 ELSE 1 END
    WHERE NOT EXISTS (
        SELECT 1 FROM calls WHERE key = NEW.key
        AND (sample_id, attempt, node) <> (NEW.sample_id, NEW.attempt, NEW.node)
    )
    ON CONFLICT (role, model, cached) DO UPDATE SET
        calls = call_sums.calls + 1,
        prompt_tokens = call_sums.prompt_tokens + excluded.prompt_tokens,
        cached_tokens = call_sums.cached_tokens + excluded.cached_tokens,
        completion_tokens = call_sums.completion_tokens + excluded.completion_tokens,
        usd = call_sums.usd + excluded.usd,
        priced = call_sums.priced + excluded.priced;
 END;
CREATE TRIGGER keep_5 AFTER INSERT ON steps BEGIN 
    INSERT INTO step_sums
    VALUES (NEW.node, 1, NEW.seconds, CASE WHEN NEW.error <> '' THEN 1 ELSE 0 END)
    ON CONFLICT (node) DO UPDATE SET
        steps = step_sums.steps + 1,
        seconds = step_sums.seconds + excluded.seconds,
        errors = step_sums.errors + excluded.errors;
 END;
CREATE TRIGGER keep_6 AFTER UPDATE ON steps BEGIN 
    UPDATE step_sums
    SET steps = steps - 1, seconds = seconds - OLD.seconds,
        errors = errors - CASE WHEN OLD.error <> '' THEN 1 ELSE 0 END
    WHERE node = OLD.node;

    INSERT INTO step_sums
    VALUES (NEW.node, 1, NEW.seconds, CASE WHEN NEW.error <> '' THEN 1 ELSE 0 END)
    ON CONFLICT (node) DO UPDATE SET
        steps = step_sums.steps + 1,
        seconds = step_sums.seconds + excluded.seconds,
        errors = step_sums.errors + excluded.errors;
 END;
CREATE TRIGGER keep_7 AFTER DELETE ON steps BEGIN 
    UPDATE step_sums
    SET steps = steps - 1, seconds = seconds - OLD.seconds,
        errors = errors - CASE WHEN OLD.error <> '' THEN 1 ELSE 0 END
    WHERE node = OLD.node;
 END;
CREATE TRIGGER keep_8 AFTER INSERT ON verdicts BEGIN 
    INSERT INTO verdict_sums
    SELECT NEW.name, CASE WHEN NEW.passed THEN 1 ELSE 0 END, CASE WHEN NEW.passed THEN 0 ELSE 1 END
    WHERE NEW.sample_id IN (SELECT id FROM samples)
    ON CONFLICT (name) DO UPDATE SET
        passed = verdict_sums.passed + excluded.passed,
        failed = verdict_sums.failed + excluded.failed;
 END;
CREATE TRIGGER keep_9 AFTER UPDATE ON verdicts BEGIN 
    UPDATE verdict_sums
    SET passed = passed - CASE WHEN OLD.passed THEN 1 ELSE 0 END,
        failed = failed - CASE WHEN OLD.passed THEN 0 ELSE 1 END
    WHERE name = OLD.name AND OLD.sample_id IN (SELECT id FROM samples);

    INSERT INTO verdict_sums
    SELECT NEW.name, CASE WHEN NEW.passed THEN 1 ELSE 0 END, CASE WHEN NEW.passed THEN 0 ELSE 1 END
    WHERE NEW.sample_id IN (SELECT id FROM samples)
    ON CONFLICT (name) DO UPDATE SET
        passed = verdict_sums.passed + excluded.passed,
        failed = verdict_sums.failed + excluded.failed;
 END;
CREATE TRIGGER keep_10 AFTER DELETE ON verdicts BEGIN 
    UPDATE verdict_sums
    SET passed = passed - CASE WHEN OLD.passed THEN 1 ELSE 0 END,
        failed = failed - CASE WHEN OLD.passed THEN 0 ELSE 1 END
    WHERE name = OLD.name AND OLD.sample_id IN (SELECT id FROM samples);
 END;
CREATE TRIGGER keep_11 AFTER INSERT ON heartbeat BEGIN 
    INSERT INTO sought_index (rowid, text) SELECT seq, text FROM sought WHERE seq IN (SELECT seq FROM unindexed ORDER BY seq LIMIT 2000);
    DELETE FROM unindexed WHERE seq IN (SELECT seq FROM unindexed ORDER BY seq LIMIT 2000);
 END;
CREATE TRIGGER keep_12 AFTER UPDATE ON heartbeat BEGIN 
    INSERT INTO sought_index (rowid, text) SELECT seq, text FROM sought WHERE seq IN (SELECT seq FROM unindexed ORDER BY seq LIMIT 2000);
    DELETE FROM unindexed WHERE seq IN (SELECT seq FROM unindexed ORDER BY seq LIMIT 2000);
 END;
CREATE TRIGGER count_answers_0 AFTER INSERT ON predictions BEGIN 
    INSERT INTO correctness SELECT NEW.target, s.seq, CASE WHEN NEW.source = 'original' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'original' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'semantic' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'semantic' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'updated' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'updated' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'control' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'control' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END
    FROM samples s WHERE s.id = NEW.sample_id AND NEW.source IN ('original', 'semantic', 'updated', 'control')
    ON CONFLICT (target, seq) DO UPDATE SET original_right = correctness.original_right + excluded.original_right, original_wrong = correctness.original_wrong + excluded.original_wrong, semantic_right = correctness.semantic_right + excluded.semantic_right, semantic_wrong = correctness.semantic_wrong + excluded.semantic_wrong, updated_right = correctness.updated_right + excluded.updated_right, updated_wrong = correctness.updated_wrong + excluded.updated_wrong, control_right = correctness.control_right + excluded.control_right, control_wrong = correctness.control_wrong + excluded.control_wrong;
     END;
CREATE TRIGGER count_answers_1 AFTER UPDATE ON predictions BEGIN 
    INSERT INTO correctness SELECT OLD.target, s.seq, CASE WHEN OLD.source = 'original' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'original' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'semantic' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'semantic' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'updated' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'updated' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'control' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'control' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END
    FROM samples s WHERE s.id = OLD.sample_id AND OLD.source IN ('original', 'semantic', 'updated', 'control')
    ON CONFLICT (target, seq) DO UPDATE SET original_right = correctness.original_right + excluded.original_right, original_wrong = correctness.original_wrong + excluded.original_wrong, semantic_right = correctness.semantic_right + excluded.semantic_right, semantic_wrong = correctness.semantic_wrong + excluded.semantic_wrong, updated_right = correctness.updated_right + excluded.updated_right, updated_wrong = correctness.updated_wrong + excluded.updated_wrong, control_right = correctness.control_right + excluded.control_right, control_wrong = correctness.control_wrong + excluded.control_wrong;
    
    INSERT INTO correctness SELECT NEW.target, s.seq, CASE WHEN NEW.source = 'original' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'original' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'semantic' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'semantic' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'updated' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'updated' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'control' AND NEW.kind <> 'refused' AND coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END, CASE WHEN NEW.source = 'control' AND NEW.kind <> 'refused' AND NOT coalesce(NEW."right", NEW.answer = s.label_text) THEN 1 ELSE 0 END
    FROM samples s WHERE s.id = NEW.sample_id AND NEW.source IN ('original', 'semantic', 'updated', 'control')
    ON CONFLICT (target, seq) DO UPDATE SET original_right = correctness.original_right + excluded.original_right, original_wrong = correctness.original_wrong + excluded.original_wrong, semantic_right = correctness.semantic_right + excluded.semantic_right, semantic_wrong = correctness.semantic_wrong + excluded.semantic_wrong, updated_right = correctness.updated_right + excluded.updated_right, updated_wrong = correctness.updated_wrong + excluded.updated_wrong, control_right = correctness.control_right + excluded.control_right, control_wrong = correctness.control_wrong + excluded.control_wrong;
     END;
CREATE TRIGGER count_answers_2 AFTER DELETE ON predictions BEGIN 
    INSERT INTO correctness SELECT OLD.target, s.seq, CASE WHEN OLD.source = 'original' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'original' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'semantic' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'semantic' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'updated' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'updated' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'control' AND OLD.kind <> 'refused' AND coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END, CASE WHEN OLD.source = 'control' AND OLD.kind <> 'refused' AND NOT coalesce(OLD."right", OLD.answer = s.label_text) THEN -1 ELSE 0 END
    FROM samples s WHERE s.id = OLD.sample_id AND OLD.source IN ('original', 'semantic', 'updated', 'control')
    ON CONFLICT (target, seq) DO UPDATE SET original_right = correctness.original_right + excluded.original_right, original_wrong = correctness.original_wrong + excluded.original_wrong, semantic_right = correctness.semantic_right + excluded.semantic_right, semantic_wrong = correctness.semantic_wrong + excluded.semantic_wrong, updated_right = correctness.updated_right + excluded.updated_right, updated_wrong = correctness.updated_wrong + excluded.updated_wrong, control_right = correctness.control_right + excluded.control_right, control_wrong = correctness.control_wrong + excluded.control_wrong;
     END;
CREATE TRIGGER count_answers_3 AFTER DELETE ON samples BEGIN DELETE FROM correctness WHERE seq = OLD.seq; END;
CREATE TRIGGER count_answers_4 AFTER INSERT ON correctness BEGIN 
    INSERT INTO correctness_sums VALUES (NEW.target, NEW.original_right, NEW.original_wrong, NEW.semantic_right, NEW.semantic_wrong, NEW.updated_right, NEW.updated_wrong, NEW.control_right, NEW.control_wrong, 1)
    ON CONFLICT (target, original_right, original_wrong, semantic_right, semantic_wrong, updated_right, updated_wrong, control_right, control_wrong) DO UPDATE SET samples = correctness_sums.samples + excluded.samples;
     END;
CREATE TRIGGER count_answers_5 AFTER UPDATE ON correctness BEGIN 
    INSERT INTO correctness_sums VALUES (OLD.target, OLD.original_right, OLD.original_wrong, OLD.semantic_right, OLD.semantic_wrong, OLD.updated_right, OLD.updated_wrong, OLD.control_right, OLD.control_wrong, -1)
    ON CONFLICT (target, original_right, original_wrong, semantic_right, semantic_wrong, updated_right, updated_wrong, control_right, control_wrong) DO UPDATE SET samples = correctness_sums.samples + excluded.samples;
    
    INSERT INTO correctness_sums VALUES (NEW.target, NEW.original_right, NEW.original_wrong, NEW.semantic_right, NEW.semantic_wrong, NEW.updated_right, NEW.updated_wrong, NEW.control_right, NEW.control_wrong, 1)
    ON CONFLICT (target, original_right, original_wrong, semantic_right, semantic_wrong, updated_right, updated_wrong, control_right, control_wrong) DO UPDATE SET samples = correctness_sums.samples + excluded.samples;
     END;
CREATE TRIGGER count_answers_6 AFTER DELETE ON correctness BEGIN 
    INSERT INTO correctness_sums VALUES (OLD.target, OLD.original_right, OLD.original_wrong, OLD.semantic_right, OLD.semantic_wrong, OLD.updated_right, OLD.updated_wrong, OLD.control_right, OLD.control_wrong, -1)
    ON CONFLICT (target, original_right, original_wrong, semantic_right, semantic_wrong, updated_right, updated_wrong, control_right, control_wrong) DO UPDATE SET samples = correctness_sums.samples + excluded.samples;
     END;
