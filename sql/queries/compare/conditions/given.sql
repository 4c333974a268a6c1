-- One row: a model with its conditions, as given.
select
    $conditions_of::varchar as benchmark,
    unnest(
        from_json(
            $conditions::json,
            '[{
                "shared_model": "VARCHAR",
                "condition_names": ["VARCHAR"],
                "condition_models": ["VARCHAR"]
            }]'
        ),
        recursive := true
    )
