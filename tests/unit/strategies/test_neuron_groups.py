from zerogap.strategies.neuron_groups import causal_work, groups_of_shard, neuron_groups


def test_groups_cover_all_layers_but_the_last():
    assert neuron_groups([5, 5, 5], group_size=2) == [
        (0, 0, 2), (0, 2, 4), (0, 4, 5),
        (1, 0, 2), (1, 2, 4), (1, 4, 5),
    ]  # fmt: skip


def test_every_group_is_in_one_shard():
    groups = neuron_groups([5, 5, 5], group_size=2)
    shards = [groups_of_shard(groups, shard, 4) for shard in range(4)]
    assert [len(shard) for shard in shards] == [2, 2, 1, 1]
    assert sorted(group for shard in shards for group in shard) == groups


def test_the_work_of_pythia_12b_is_two_passes_per_group():
    """35 layers of 20,480 neurons, 40 groups each."""
    widths = (20_480,) * 36
    work = causal_work(widths, group_size=512, num_questions=100, num_leaked=660)
    assert work == (1400, 100, 2, 2800)
    shard = causal_work(widths, group_size=512, num_questions=100, num_leaked=60, num_shards=3)
    assert shard == (467, 60, 2, 934)
