"""An independent checker of certificates, written by `tasks/certify/format.md` alone: it uses
nothing of this project.

python checker.py FILE [DIGEST] prints how many figures it recomputed, and those that differ.
"""

import hashlib
import json
import math
import sys
import zipfile
from collections import defaultdict
from functools import cache
from itertools import product
from operator import add
from pathlib import Path

import numpy as np
from scipy.stats import t as student_t

JUDGE_CONFIG = ("judge", "judge_config_hash", "template_hash", "grading", "judge_trial")
SAMPLING = ("model", "model_config_hash", "vintage")
ORIGINAL = ("task_id", "original_id", "original_hash")
VARIANT = ("task_id", "criterion_id", "content_hash")
ALL = ("all", "")
NOTHING = (0.0, 0, 0.0, 0.0, 0.0)
"""Points, number of decided criteria, number of met ones, and the positive and negative weights of
decided ones.
"""


def read(path, digest=None):
    content = Path(path).read_bytes()
    actual = hashlib.sha256(content[:-64]).hexdigest()
    assert content[-64:] == actual.encode(), "the file does not have its digest"
    assert digest in {None, actual}, "the digest is not the one that was published"
    archive = zipfile.ZipFile(path)
    tables = {}
    manifest = json.loads(archive.read("manifest.json"))
    for member in manifest["files"]:
        content = archive.read(member["name"])
        assert hashlib.sha256(content).hexdigest() == member["sha256"], member["name"]
        if member["name"].endswith(".jsonl"):
            tables[member["name"].split("/")[1][:-6]] = [
                json.loads(line) for line in content.splitlines()
            ]
    return manifest, tables


def student(degrees):
    return student_t.ppf(0.975, degrees)


@cache
def draws(n_tasks, seed, resamples):
    generator = np.random.default_rng(seed)
    shares = np.full(n_tasks, 1 / n_tasks)
    sizes = [min(1000, resamples - start) for start in range(0, resamples, 1000)]
    return np.concatenate(
        [generator.multinomial(n_tasks, shares, size=size) for size in sizes]
    ).astype(float)


def interval(numerators, denominators, counts):
    """The interval (low, high) of a ratio of sums; with denominators of 1, of a mean."""
    each = np.sort(numerators / denominators)
    runs = np.split(each, np.flatnonzero(np.diff(each) > 1e-9 * np.abs(each).max()) + 1)
    n = len(each)
    n_differing = len(each) - max(map(len, runs))
    if n_differing < 5:
        return None, None
    ratio = numerators.sum() / denominators.sum()
    excess = numerators - ratio * denominators
    spread = math.sqrt((excess**2).sum())
    excess /= spread
    counts = counts[counts @ denominators > 0]
    moved = counts @ excess
    off = (counts @ excess) / (counts @ denominators)
    squares = (
        counts @ excess**2
        - 2 * off * (counts @ (excess * denominators))
        + off**2 * (counts @ denominators**2)
    )
    below, above = np.quantile(moved / np.sqrt(np.maximum(squares, 1e-6)), [0.025, 0.975])
    least = student(n_differing - 1) * math.sqrt(n / (n - 1))
    most = max(2 * student(n - 1), least)
    error = spread / denominators.sum()
    low, high = (min(max(side, least), most) * error for side in (above, -below))
    return max(ratio - low, each[0]), min(ratio + high, each[-1])


def labels_of_criteria(tables, tasks):
    """Criterion -> (weight, its labels); (task, label) -> [P, N, number of criteria]."""
    criteria = {}
    rubrics = defaultdict(lambda: [0.0, 0.0, 0])
    others = defaultdict(list)
    for row in tables["criterion_labels"]:
        others[row["task_id"], row["criterion_id"]].append((row["kind"], row["label"]))
    for row in (row for row in tables["criteria"] if row["task_id"] in tasks):
        labels = [
            ALL,
            *(
                (kind, "(none)" if row[kind] is None else row[kind])
                for kind in ("category", "severity")
            ),
        ]
        labels += others[row["task_id"], row["criterion_id"]]
        criteria[row["task_id"], row["criterion_id"], row["content_hash"]] = row["weight"], labels
        for label in labels:
            sums = rubrics[row["task_id"], label]
            weight = row["weight"] or 0.0
            sums[:] = sums[0] + max(weight, 0.0), sums[1] + min(weight, 0.0), sums[2] + 1
    return criteria, rubrics


def tasks_under(tables, tasks, hard):
    """A label of tasks -> the tasks under it."""
    by_label = defaultdict(set)
    for task, row in tasks.items():
        labels = [
            (kind, "(none)" if row[kind] is None else str(row[kind]))
            for kind in ("topic", "expert", "turns")
        ]
        labels += [
            ("reference_texts", "with" if row["has_reference_texts"] else "without"),
            ("subset", "full"),
        ]
        for label in [ALL, *labels, *[("subset", "hard")] * (task in hard)]:
            by_label[label].add(task)
    for row in tables["labelled_tasks"]:
        by_label[row["kind"], row["label"]].add(row["task_id"])
    return {label: under & tasks.keys() for label, under in by_label.items()}


def verdicts_of(tables, criteria):
    """(judge configuration, response) -> label -> sums; those not imported; marks of hidden
    failures; failures.
    """
    sums_of = defaultdict(lambda: defaultdict(lambda: NOTHING))
    other = set()
    hiding = defaultdict(set)
    failed = set()
    originals = {
        tuple(map(row.get, VARIANT)): tuple(map(row.get, ORIGINAL))
        for row in tables["criterion_variants"]
    }
    for row in tables["verdicts"]:
        key = row["task_id"], row["criterion_id"], row["criterion_hash"]
        weight, labels = criteria.get(originals.get(key, key), (None, ()))
        for grading in (
            ["ternary", "ternary_as_binary"] if row["grading"] == "ternary" else [row["grading"]]
        ):
            judge_config = (*(row[name] for name in JUDGE_CONFIG[:3]), grading, row["judge_trial"])
            value = row["value"]
            other |= {judge_config} if row["source"] != "imported" else set()
            is_own = row["source"] == "judged"
            mark = row["may_hide_failures"]
            hiding[judge_config, row["response_id"]].add(False if is_own and mark is None else mark)
            failed |= {(judge_config, row["response_id"])} if value is None else set()
            value = 0.0 if value == 0.5 and grading == "ternary_as_binary" else value
            more = (0.0, 0, value or 0.0, 0.0, 0.0)
            if None not in (value, weight):
                more = weight * value, 1, value, max(weight, 0.0), min(weight, 0.0)
            for label in labels:
                sums = sums_of[judge_config, row["response_id"]]
                sums[label] = tuple(map(add, sums[label], more))
    return sums_of, other, hiding, failed


def runs_of(tables, tasks, rubrics, sums_of, other, hiding, failed):
    """Run -> (trials, response times, marks, failed tasks); (run, task, label) -> trial -> sums."""
    responses = {row["response_id"]: row for row in tables["responses"] if row["task_id"] in tasks}
    sampled = defaultdict(list)
    runs = {}
    sums = defaultdict(dict)
    labels = defaultdict(list)
    for row in responses.values():
        sampled[tuple(row[name] for name in SAMPLING)].append(row)
    for task, label in rubrics:
        labels[task].append(label)
    for judge_config, response in sums_of:
        row = responses[response]
        run = (*(row[name] for name in SAMPLING), *judge_config)
        trials, first, *_ = runs.setdefault(run, (set(), set(), set(), set()))
        trials.add(row["trial"])
        first.add(row["created_at"])
    for run, (trials, _, hides, failing) in runs.items():
        trials.update(row["trial"] for row in sampled[run[:3]] if run[3:] in other)
        for row in (row for row in sampled[run[:3]] if row["trial"] in trials):
            hides.update(hiding.get((run[3:], row["response_id"]), ()))
            has_failed = row["status"] != "ok" or (run[3:], row["response_id"]) in failed
            failing.update({row["task_id"]} if has_failed else ())
            decided = sums_of.get((run[3:], row["response_id"]), {})
            for label in labels[row["task_id"]]:
                sums[run, row["task_id"], label][row["trial"]] = decided.get(label, NOTHING)
    count_trials(tables, runs, sums, other)
    return runs, sums


def bar_of(tables, run):
    """The coverage that a vintage needs: by the last rule of the model, else of all others, else
    0.99.
    """
    rules = sorted(tables.get("coverage_rules", ()), key=lambda row: row["created_at"])
    of_model = [
        row["min_coverage"] for row in rules if (row["model"], row["model_config_hash"]) == run[:2]
    ]
    of_others = [row["min_coverage"] for row in rules if not row["model"]]
    return [0.99, *of_others[-1:], *of_model[-1:]][-1]


def count_trials(tables, runs, sums, other):
    """Leave only the trials that count: the wanted ones, and further ones that are as full as
    these.
    """
    rules = {tuple(row[name] for name in SAMPLING): row for row in tables.get("coverage_rules", ())}
    for run, (trials, *_) in runs.items():
        if run[3:] in other and run[:3] in rules:
            wanted = rules[run[:3]]["wanted_trials"]
            decided = n_decided(run, sums)
            most = max((n for trial, n in decided.items() if trial <= wanted), default=0)
            bar = bar_of(tables, run)
            further = {trial for trial in trials if trial > wanted and decided[trial] >= bar * most}
            trials.clear()
            trials.update(range(1, wanted + 1), further)


def n_decided(run, sums):
    """Trial -> the number of decided criteria."""
    decided = defaultdict(int)
    for (of_run, _, label), by_trial in sums.items():
        for trial, each in by_trial.items():
            decided[trial] += each[1] if (of_run, label) == (run, ALL) else 0
    return decided


def digest(*parts):
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def check_ids(manifest, tables, texts):
    """Check that the ids of responses, and of verdicts on responses with given texts, are the right
    hashes.
    """
    by_hash = {hashlib.sha256(text.encode()).hexdigest(): text for text in texts}
    of = {}
    for row in tables["responses"]:
        names = ("task_id", "conversation_id", "model", "model_config_hash", "trial", "vintage")
        own = digest(
            "response",
            manifest["benchmark"],
            manifest["dataset_revision"],
            *(row[name] for name in names),
        )
        assert row["response_id"] == own, row
        of[own] = by_hash.get(row["text_sha256"])
    pieces = pieces_of(tables)
    for row in (row for row in tables["verdicts"] if of[row["response_id"]] is not None):
        fields = [row[name] for name in ("criterion_id", "criterion_hash", *JUDGE_CONFIG)]
        piece = [] if row["piece_hash"] is None else [pieces[row["task_id"], row["piece_hash"]]]
        of_response = row["response_id"], of[row["response_id"]]
        assert row["verdict_id"] == digest("verdict", *of_response, *fields, "base", *piece), row


def pieces_of(tables):
    """Task and hash of a piece -> the hashes of its criteria, which follow each other in the
    rubric.
    """
    rubrics = defaultdict(list)
    pieces = {}
    for row in sorted(tables["criteria"], key=lambda row: row["position"]):
        rubrics[row["task_id"]].append(row["content_hash"])
    for task, rubric in rubrics.items():
        for first, last in product(range(len(rubric)), range(1, len(rubric) + 1)):
            piece = rubric[first:last]
            pieces[task, hashlib.md5(" ".join(piece).encode()).hexdigest()] = piece
    return pieces


def check_calls(manifest, tables):
    """Check that the manifest has the hash of the numbers of criteria in a call."""
    calls = {
        row["verdict_id"]: row["n_in_call"]
        for row in tables["verdicts"]
        if row["n_in_call"] is not None
    }
    text = "\n".join(f"{verdict} {calls[verdict]}" for verdict in sorted(calls))
    assert manifest["calls_sha256"] == (
        hashlib.sha256(text.encode()).hexdigest() if calls else None
    )


class Figures:
    def __init__(self, manifest, tables, resamples=None):
        self.seed = manifest["intervals"]["seed"]
        self.resamples = resamples or manifest["intervals"]["resamples"]
        self.scores = {row["score_name"]: row for row in tables["score_definitions"]}
        tasks = {row["task_id"]: row for row in tables["tasks"] if row["is_admitted"]}
        sets = defaultdict(set)
        for row in tables["split_members"]:
            sets[row["split"], False].add(row["task_id"])
        for row in tables["hard_subset"]:
            sets[row["field"] + " (own hard)", True].add(row["task_id"])
        self.sets = {key: sorted(each & tasks.keys()) for key, each in sets.items()}
        self.under = tasks_under(
            tables, tasks, {task for (_, own), each in sets.items() if own for task in each}
        )
        criteria, self.rubrics = labels_of_criteria(tables, tasks)
        self.stopped = {
            self.about({**row, "is_own_hard": False}): row for row in tables["stopping_scores"]
        }
        self.primary = next(name for name, row in self.scores.items() if row["is_primary"])
        self.bar = cache(lambda run: bar_of(tables, run))
        self.n_criteria = {task: row["n_criteria"] for task, row in tasks.items()}
        self.part_of = {
            run[:3] for (run, *_), row in self.stopped.items() if row["n_tasks_skipped"]
        }
        self.runs, self.sums = runs_of(tables, tasks, self.rubrics, *verdicts_of(tables, criteria))

    def responses(self, run, task, label, score):
        """Trial -> the score (None if incomplete), its bounds, and the numbers of decided and of
        all criteria.
        """
        positive, negative, n = self.rubrics.get((task, label), (0.0, 0.0, 0))
        factors = self.scores[score]
        divisor = (
            factors["denominator_positive"] * positive + factors["denominator_negative"] * negative
        )
        if divisor <= 0:
            return None
        by_trial = {}
        least = factors["numerator_negative"] * negative
        trials = self.sums.get((run, task, label), {})
        for trial in self.runs[run][0]:
            points, decided, _, plus, minus = trials.get(trial, NOTHING)
            low = points + negative - minus
            high = points + positive - plus
            score, low, high = ((each + least) / divisor for each in (points, low, high))
            by_trial[trial] = score if decided == n else None, low, high, decided, n
        return by_trial

    @cache  # noqa: B019 - the world lives as long as its figures
    def known(self, run, task_set, label, score):
        """Task -> its responses by trial, for the tasks that have such a score."""
        rubric = ALL if label in self.under else label
        chosen = [task for task in self.sets[task_set] if task in self.under.get(label, [task])]
        by_task = {task: self.responses(run, task, rubric, score) for task in chosen}
        return {task: trials for task, trials in by_task.items() if trials is not None}

    def all_rows(self):
        """Return the keys of rows with figures: each run that responded to a task with such a score
        under the label.
        """
        responding = {key[:2] for key in self.sums}
        labels = {label for _, label in self.rubrics} | self.under.keys()
        every = product(self.runs, self.sets, labels, self.scores)
        return {
            key for key in every if any((key[0], task) in responding for task in self.known(*key))
        }

    @cache  # noqa: B019 - the world lives as long as its figures
    def of_tasks(self, run, task_set, label, score):
        """Task -> its scores by trial; and the label of the criteria that they cover."""
        scores = {
            task: {trial: each[0] for trial, each in trials.items() if each[0] is not None}
            for task, trials in self.known(run, task_set, label, score).items()
        }
        return scores, ALL if label in self.under else label

    @cache  # noqa: B019 - as above
    def unranked(self, run, task_set, label, score):
        """The figures of a row with a score, without its ranks."""
        by_task, rubric = self.of_tasks(run, task_set, label, score)
        trials = self.runs[run][0]
        floor = self.floor(score)
        means = {task: sum(each.values()) / len(each) for task, each in by_task.items() if each}
        figures = {
            "n_tasks": len(means),
            "n_tasks_wanted": len(by_task),
            "n_trials": len(trials),
        }
        figures["n_tasks_full"] = sum(len(each) == len(trials) for each in by_task.values())
        every = [
            each for of in self.known(run, task_set, label, score).values() for each in of.values()
        ]
        _, lower, upper, decided, wanted = zip(*every, strict=True)
        figures |= {
            "coverage": sum(decided) / sum(wanted),
            "is_complete": figures["n_tasks_full"] == len(by_task),
        }
        figures |= {
            "mean_lower": max(np.mean(lower), floor),
            "mean_upper": max(np.mean(upper), floor),
        }
        raw = sum(means.values()) / len(means) if means else None
        figures |= {"raw_mean_score": raw, "mean_score": None if raw is None else max(raw, floor)}
        met = np.array(
            [sum(self.sums[run, task, rubric][t][2] for t in by_task[task]) for task in means]
        )
        judged = np.array(
            [float(self.rubrics[task, rubric][2] * len(by_task[task])) for task in means]
        )
        counts = draws(len(self.sets[task_set]), self.seed, self.resamples)[
            :, [self.sets[task_set].index(t) for t in means]
        ]
        ends = {
            "raw_ci": (None, None),
            "met_ci": (None, None),
            "trials_ci": (None, None),
        }
        figures |= {
            "met_share": None,
            "n_judged": None,
            "trials_mean": None,
        }
        if means:
            figures |= {"met_share": met.sum() / judged.sum(), "n_judged": int(judged.sum())}
            ends["raw_ci"] = interval(np.array([*means.values()]), np.ones(len(means)), counts)
            ends["met_ci"] = interval(met, judged, counts)
        part = self.stopped.get((run, task_set, label, score), {})
        n_left = part.get("n_tasks_evaluated", 0) + part.get("n_tasks_skipped", 0)
        n_left -= len(means) + len((by_task.keys() - means.keys()) & self.runs[run][3])
        part = part if part.get("n_tasks_skipped") and n_left > 0 else {}
        skipped = min(n_left, part["n_tasks_skipped"]) if part else None
        figures |= {
            "n_tasks_skipped": skipped,
            "unbiased_mean_score": part.get("unbiased_mean_score"),
        }
        if part:
            holds = skipped == part["n_tasks_skipped"]
            ends["raw_ci"] = (
                (part["sequence_low"], part["sequence_high"]) if holds else (None, None)
            )
        ends["ci"] = [None if end is None else max(end, floor) for end in ends["raw_ci"]]
        each = np.array(
            [mean for _, mean in self.trial_scores(run, task_set, label, score).values()]
        )
        if len(each) and figures["n_tasks"] == figures["n_tasks_full"]:
            figures["trials_mean"] = each.mean()
            if len(each) > 1:
                half = student(len(each) - 1) * each.std(ddof=1) / math.sqrt(len(each))
                ends["trials_ci"] = each.mean() - half, each.mean() + half
        for name, (low, high) in ends.items():
            figures |= {f"{name}_low": low, f"{name}_high": high}
        is_latest = self.is_latest(run, task_set)
        return figures | {"is_latest": is_latest, "may_hide_failures": mark_of(self.runs[run][2])}

    def row(self, stated):
        """The figures of a row with a score."""
        run, *of = self.about(stated)
        latest = [
            other for other in self.runs if self.is_latest(other, of[0]) and other[3:] == run[3:]
        ]
        own = [other for other in self.runs if other[2:] == run[2:]]
        ranks = self.rank(run, own, "rank", "n_tasks_ranked", *of)
        return (
            self.unranked(run, *of)
            | ranks
            | self.rank(run, latest, "latest_rank", "n_tasks_latest_ranked", *of)
        )

    def compared(self, stated):
        """Return how many figures of a row were recomputed, and those that differ."""
        figures = self.row(stated)
        about = self.about(stated)
        return len(figures), [
            (about, name, stated[name], value)
            for name, value in figures.items()
            if not is_same(name, stated[name], value)
        ]

    def trial_scores(self, run, task_set, label, score):
        """Trial -> the number of tasks that are complete in it, and the mean score over them."""
        values = self.of_tasks(run, task_set, label, score)[0].values()
        floor = self.floor(score)
        trials = {trial: [of[trial] for of in values if trial in of] for trial in self.runs[run][0]}
        return {
            trial: (len(each), max(np.mean(each), floor)) for trial, each in trials.items() if each
        }

    def floor(self, score):
        return 0.0 if self.scores[score]["clips_mean"] else -math.inf

    def about(self, row):
        label = (row["breakdown"], row["label"]) if "breakdown" in row else ALL
        task_set = next(
            key
            for key in self.sets
            if key[0] == row["split"] and row.get("is_own_hard", key[1]) == key[1]
        )
        return (
            tuple(row[name] for name in (*SAMPLING, *JUDGE_CONFIG)),
            task_set,
            label,
            row["score_name"],
        )

    @cache  # noqa: B019 - as above
    def is_latest(self, run, task_set):
        same = [other for other in self.runs if (other[:2], other[3:]) == (run[:2], run[3:])]
        orders = {
            other: self.currency(other, task_set)
            for other in same
            if self.responded(other, task_set)
        }
        return run in orders and orders[run] == max(orders.values())

    @cache  # noqa: B019 - as above
    def responded(self, run, task_set):
        """The tasks of the set with a response in the run."""
        return {task for task in self.sets[task_set] if (run, task, ALL) in self.sums}

    @cache  # noqa: B019 - as above
    def currency(self, run, task_set):
        """What decides which vintage is current: at the bar, coverage below it, time of the first
        response, label.
        """
        every = [
            each
            for of in self.known(run, task_set, ALL, self.primary).values()
            for each in of.values()
        ]
        covered = sum(each[3] for each in every) / sum(each[4] for each in every)
        if run[:3] in self.part_of:
            responded = {task for of_run, task, _ in self.sums if of_run[:3] == run[:3]}
            left_out = sum(self.n_criteria[task] for task in set(self.sets[task_set]) - responded)
            covered += left_out / sum(self.n_criteria[task] for task in self.sets[task_set])
        is_at_bar = round(covered, 12) >= self.bar(run)
        return is_at_bar, 0 if is_at_bar else round(covered, 12), min(self.runs[run][1]), run[2]

    def rank(self, run, others, name, n_name, *of):
        """The rank by the mean over tasks that all ranked runs share; a run is ranked with half of
        the most tasks.
        """
        values = {
            o: {t: sum(v.values()) / len(v) for t, v in self.of_tasks(o, *of)[0].items() if v}
            for o in others
        }
        most = max(map(len, values.values()), default=0)
        ranked = {other: each for other, each in values.items() if each and 2 * len(each) >= most}
        shared = set.intersection(*map(set, ranked.values())) if ranked else set()
        if run not in ranked or not shared:
            return dict.fromkeys((name, n_name, f"{name}_low", f"{name}_high"))
        means = {
            o: round(math.fsum(each[t] for t in shared) / len(shared), 12)
            for o, each in ranked.items()
        }
        rank = 1 + sum(mean > means[run] for mean in means.values())
        ends = {
            other: [self.unranked(other, *of)[f"raw_ci_{end}"] for end in ("low", "high")]
            for other in ranked
        }
        ends = {other: each for other, each in ends.items() if None not in (*each, *ends[run])}
        above = sum(low > ends[run][1] for low, _ in ends.values())
        below = sum(high < ends[run][0] for _, high in ends.values())
        ranks = {
            name: rank,
            n_name: len(shared),
            f"{name}_low": min(1 + above, rank),
        }
        return ranks | {f"{name}_high": max(len(ranked) - below, rank)}


def mark_of(marks):
    """Return whether failures may be hidden: True if any verdict says so, else None if any is
    unknown.
    """
    return True if True in marks else None if None in marks else False


def is_same(figure, stated, recomputed):
    off = 2e-6 if "ci_" in figure else 1e-9
    is_near = None not in (stated, recomputed) and math.isclose(
        stated, recomputed, rel_tol=off, abs_tol=off
    )
    return (
        stated == recomputed if isinstance(stated, int) else is_near or stated is recomputed is None
    )


def check(path, digest=None, resamples=None):
    """Return the number of recomputed figures, and the wrong ones: (leaderboard, row, figure,
    certified, computed).
    """
    manifest, tables = read(path, digest)
    check_ids(manifest, tables, [])
    figures = Figures(manifest, tables, resamples)
    n = 0
    wrong = []
    for name in ("leaderboard", "hard_leaderboard", "breakdown_leaderboard"):
        for stated in (row for row in tables[name] if row["is_judged"]):
            n_compared, differing = figures.compared(stated)
            n += n_compared
            wrong += [(name, *each) for each in differing]
    return n, wrong


if __name__ == "__main__":
    n_checked, differing = check(*sys.argv[1:3])
    print(f"{n_checked} figures recomputed, {len(differing)} differ", *differing[:50], sep="\n")
    sys.exit(bool(differing))
