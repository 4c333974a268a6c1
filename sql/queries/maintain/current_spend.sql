-- One row: what the calls of a run came to on a day, for a purpose, with a
-- model, as the ledger knows it now; in the place of the stored table.
select unnest(from_json($spend::json, $structure), recursive := true)
