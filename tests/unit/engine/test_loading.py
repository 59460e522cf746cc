from transformers import AutoConfig, BloomConfig, LlamaConfig

from zerogap.engine.loading import context_length


def test_the_context_is_as_long_as_the_configuration_says():
    assert context_length(LlamaConfig(max_position_embeddings=512)) == 512
    assert context_length(AutoConfig.for_model("mpt", max_seq_len=256)) == 256


def test_an_architecture_without_a_longest_context_has_no_limit():
    assert context_length(BloomConfig()) > 10**9
