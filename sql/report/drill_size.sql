-- How many answers there are to be read.
select count(*) as n_answers
from responses
inner join $entries as entries (model, model_config_hash, vintage, entry)
    using (model, model_config_hash, vintage)
where benchmark = $benchmark and dataset_revision = $revision
