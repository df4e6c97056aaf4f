"""Which weights a GPT-2 has: their names and shapes, as one tree.

Every file format is read into this tree, and gpt2.py takes it apart again: the keys of a dict are
the names of a function's arguments there. A tree is made of dicts and lists, with one weight in
each leaf:

    wte                       [n_vocab, n_embd]        token embeddings
    wpe                       [n_ctx, n_embd]          position embeddings
    blocks                    a list of n_layer dicts, one for each layer:
        ln_1      g, b        [n_embd]                 layer norm before attention
        attn
            c_attn    w, b    [n_embd, 3 n_embd]       makes queries, keys and values
            c_proj    w, b    [n_embd, n_embd]         mixes what the heads found
        ln_2      g, b        [n_embd]                 layer norm before the mlp
        mlp
            c_fc      w, b    [n_embd, 4 n_embd]       widens each vector
            c_proj    w, b    [4 n_embd, n_embd]       narrows it again
    ln_f          g, b        [n_embd]                 layer norm after the last layer

A layer norm has a gain g and a bias b. A linear layer has a matrix w, [in, out], and a bias b,
[out]. Weights are also called parameters, as in `params`, the name of such a tree elsewhere.
"""


def shapes_of(hparams):
    """The tree of a model of this size, with a shape, a tuple of int, in the place of each weight.

    hparams: dict with n_vocab, n_ctx, n_embd and n_layer.
    """
    n_embd = hparams["n_embd"]

    def linear(n_in, n_out):
        return {"w": (n_in, n_out), "b": (n_out,)}

    norm = {"g": (n_embd,), "b": (n_embd,)}
    block = {
        "ln_1": norm,
        "attn": {"c_attn": linear(n_embd, 3 * n_embd), "c_proj": linear(n_embd, n_embd)},
        "ln_2": norm,
        "mlp": {"c_fc": linear(n_embd, 4 * n_embd), "c_proj": linear(4 * n_embd, n_embd)},
    }
    return {
        "wte": (hparams["n_vocab"], n_embd),
        "wpe": (hparams["n_ctx"], n_embd),
        "blocks": [block] * hparams["n_layer"],
        "ln_f": norm,
    }


def map_tree(function, tree, name="model"):
    """The same tree, with function(name, shape) in the place of each shape.

    The names are those of OpenAI's checkpoints: "model/wte", "model/h0/attn/c_attn/w" and so on,
    where h0 is the first layer.
    """
    if isinstance(tree, tuple):
        return function(name, tree)
    if isinstance(tree, list):
        return [map_tree(function, block, f"{name}{i}") for i, block in enumerate(tree)]
    names = {key: f"{name}/h" if key == "blocks" else f"{name}/{key}" for key in tree}
    return {key: map_tree(function, tree[key], names[key]) for key in tree}
