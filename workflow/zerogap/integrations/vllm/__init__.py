"""RailCap and LNE-blocking inside vLLM. Only `processors`, which vLLM loads, imports vLLM."""
