"""Hugging Face's GPT-2, with the same random weights, gives the same logits and the same ids."""

import numpy as np
import pytest
from conftest import random_params

import gpt2

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
transformers = pytest.importorskip("transformers", reason="transformers is not installed")

SHAPES = {
    "small": {"n_vocab": 97, "n_ctx": 40, "n_embd": 24, "n_layer": 3, "n_head": 4},
    "124M": {"n_vocab": 50257, "n_ctx": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12},
}
CUTS = {"whole": [33], "token by token": [1] * 33, "uneven": [5, 1, 9, 2, 16]}


def as_transformers(params, n_head):
    """Hugging Face's model with our weights. Its matrices are [in, out] too."""
    n_vocab, n_embd = params["wte"].shape
    config = transformers.GPT2Config(
        vocab_size=n_vocab,
        n_positions=len(params["wpe"]),
        n_embd=n_embd,
        n_layer=len(params["blocks"]),
        n_head=n_head,
        bos_token_id=n_vocab - 1,
        eos_token_id=n_vocab - 1,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    state = {"wte.weight": params["wte"], "wpe.weight": params["wpe"]}
    state |= {"ln_f.weight": params["ln_f"]["g"], "ln_f.bias": params["ln_f"]["b"]}
    for i, block in enumerate(params["blocks"]):
        for name in ("ln_1", "ln_2"):
            state[f"h.{i}.{name}.weight"] = block[name]["g"]
            state[f"h.{i}.{name}.bias"] = block[name]["b"]
        for part in ("attn", "mlp"):
            for name, kernel in block[part].items():
                state[f"h.{i}.{part}.{name}.weight"] = kernel["w"]
                state[f"h.{i}.{part}.{name}.bias"] = kernel["b"]
    state = {f"transformer.{name}": torch.tensor(array) for name, array in state.items()}
    missing = model.load_state_dict(state, strict=False).missing_keys
    assert set(missing) <= {"lm_head.weight"}  # tied to wte
    return model


@torch.no_grad()
def logits_of(model, ids):
    return model(torch.tensor(ids)).logits.numpy()


@pytest.fixture(scope="module", params=SHAPES)
def pair(request):
    """Our weights and n_head, their model, ids [2, 33], and their logits for these ids."""
    shape = dict(SHAPES[request.param])
    n_head = shape.pop("n_head")
    params = random_params(**shape, scale=0.2 if request.param == "small" else 0.05)
    model = as_transformers(params, n_head)
    ids = np.random.default_rng(1).integers(0, shape["n_vocab"], size=(2, 33))
    return params, n_head, model, ids, logits_of(model, ids)


@pytest.mark.parametrize("cut", CUTS)
def test_logits_are_those_of_transformers(pair, cut):
    """However the ids are cut into calls, the logits differ by at most 2e-5 of the largest."""
    params, n_head, _, ids, expected = pair
    cache, n_past = None, 0
    for size in CUTS[cut]:
        piece = ids[:, n_past : n_past + size]
        logits, cache = gpt2.gpt2(piece, **params, n_head=n_head, cache=cache)
        n_past += size
        difference = np.abs(logits - expected[:, n_past - 1]).max()
        assert difference <= 2e-5 * np.abs(expected).max()


def test_greedy_ids_are_those_of_transformers(pair):
    """The likeliest token is the same at each of 20 steps."""
    params, n_head, model, ids, _ = pair
    prompt = ids[:1, :20]
    ours = gpt2.generate(prompt[0].tolist(), params, n_head, 20, [np.random.default_rng(0)])
    theirs = model.generate(
        torch.tensor(prompt),
        attention_mask=torch.ones_like(torch.tensor(prompt)),
        max_new_tokens=20,
        min_new_tokens=20,
        do_sample=False,
        pad_token_id=0,
        eos_token_id=None,
    )
    assert [int(id) for [id] in ours] == theirs[0, 20:].tolist()
