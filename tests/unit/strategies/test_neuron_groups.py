from zerogap.strategies.neuron_groups import groups_of_shard, neuron_groups


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
