-- One row: a configured model and the coverage that a vintage of it needs to be current.
--
-- The rule that was stored last counts: the model's own, else the benchmark's (that of the
-- empty model), else the default of `coverage.min`.
--
-- depends on: temp.sampled_runs, coverage_rules
with bars as (
    select benchmark, model, model_config_hash, arg_max(min_coverage, created_at) as bar
    from coverage_rules
    group by all
),

benchmark_bars as (
    select benchmark, bar
    from bars
    where model = ''
)

select distinct
    benchmark,
    model,
    model_config_hash,
    coalesce(own_bars.bar, benchmark_bars.bar, 0.99) as bar
from temp.sampled_runs
left join bars as own_bars using (benchmark, model, model_config_hash)
left join benchmark_bars using (benchmark)
