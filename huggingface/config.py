"""What the settings of a Hugging Face folder say of its model: its sizes, and where a text ends.

    config.json               what kind of model it is, and its sizes
    generation_config.json    which token ends a text (not in every folder)

transformers has many kinds of models, and GPT-2 itself can be built in several ways there. This
program has only the way of OpenAI's GPT-2. A folder that asks for anything else is refused: the
model would run, and write nonsense.
"""

import json
import os

from files import read_text

SIZES = {  # name -> (what config.json calls it, what it is where config.json does not say)
    "n_vocab": ("vocab_size", 50257),
    "n_ctx": ("n_positions", 1024),
    "n_embd": ("n_embd", 768),
    "n_head": ("n_head", 12),
    "n_layer": ("n_layer", 12),
}
ALIASES = {  # other names that transformers understands
    "hidden_size": "n_embd",
    "max_position_embeddings": "n_positions",
    "num_attention_heads": "n_head",
    "num_hidden_layers": "n_layer",
}
TOKENIZER_CLASSES = (None, "GPT2Tokenizer", "GPT2TokenizerFast")
TOKENIZER_CLASSES += ("PreTrainedTokenizerFast", "TokenizersBackend")  # old and new name
SETTINGS = {  # of config.json: name -> (the value that a missing one stands for, GPT-2's values)
    "model_type": (None, ("gpt2",)),
    "activation_function": ("gelu_new", ("gelu_new", "gelu_pytorch_tanh")),
    "layer_norm_epsilon": (1e-5, (1e-5,)),
    "scale_attn_weights": (True, (True,)),
    "scale_attn_by_inverse_layer_idx": (False, (False,)),
    "reorder_and_upcast_attn": (False, (False,)),
    "add_cross_attention": (False, (False,)),
    "tie_word_embeddings": (True, (True,)),
    "pruned_heads": (None, (None, {})),
    "quantization_config": (None, (None,)),
    "tokenizer_class": (None, TOKENIZER_CLASSES),
}


class Unsupported(ValueError):
    """The folder may be sound, but this program cannot run the model in it."""


def read_json(folder, name):
    """The JSON object in a file of a folder: a dict. Raises ValueError naming the file."""
    path = os.path.join(folder, name)
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a JSON object")
    return content


def read_json_if_there(folder, name):
    """The JSON object in a file of a folder, or {} if there is no such file."""
    return read_json(folder, name) if os.path.isfile(os.path.join(folder, name)) else {}


def section(content, name):
    """The JSON object that has this name in the content of a file, or {} if there is none."""
    return content[name] if isinstance(content.get(name), dict) else {}


def shown(value):
    """A value from a file, in one line of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def check_settings(path, content, settings, remedy="run this model with transformers"):
    """Raises Unsupported if the content of a file has a setting that is not GPT-2's.

    settings: as SETTINGS. "model.type" is the name of 1 in {"model": {"type": 1}}.
    """
    for name, (default, good) in settings.items():
        *outer, key = name.split(".")
        inner = section(content, outer[0]) if outer else content
        value = inner.get(key, default)
        if value not in good:
            known = " or ".join(shown(value) for value in good)
            raise Unsupported(
                f"{path}: {name} is {shown(value)}, but this program supports only {known}: "
                f"{remedy}"
            )


def read_config(folder):
    """What is in a folder's config.json: a dict. Raises Unsupported if it is not GPT-2's."""
    config = read_json(folder, "config.json")
    for alias, name in ALIASES.items():
        if alias in config:
            config[name] = config[alias]
    path = os.path.join(folder, "config.json")
    check_settings(path, config, SETTINGS)
    hparams = read_hparams(folder, config)
    check_settings(path, config, {"n_inner": (None, (None, 4 * hparams["n_embd"]))})
    return config


def read_hparams(folder, config):
    """The sizes of a model: a dict of five whole numbers. Raises ValueError naming the file."""
    path = os.path.join(folder, "config.json")
    hparams = {name: config.get(key, default) for name, (key, default) in SIZES.items()}
    for name, size in hparams.items():
        if type(size) is not int or not 1 <= size <= 10**6:
            raise ValueError(f"{path}: {SIZES[name][0]} is {shown(size)}, not from 1 to 1,000,000")
    if hparams["n_embd"] % hparams["n_head"] != 0:
        raise ValueError(f"{path} gives an n_embd that is not a multiple of n_head")
    return hparams


def read_end_of_text(folder, config):
    """The id of the token that ends a text, or None if no token does.

    A folder with generation_config.json has it there, another one in config.json. An id beyond
    the vocabulary is never drawn, so it ends nothing: 50256 in a small vocabulary, for example,
    where whoever made config.json left the default in it.
    """
    name = "generation_config.json"
    if os.path.isfile(os.path.join(folder, name)):
        end = read_json(folder, name).get("eos_token_id")
    else:
        name, end = "config.json", config.get("eos_token_id", 50256)
    path = os.path.join(folder, name)
    ends = end if isinstance(end, list) else [] if end is None else [end]
    if not all(type(id) is int for id in ends):
        raise ValueError(f"{path}: eos_token_id is {shown(end)}, which is not the id of a token")
    n_vocab = read_hparams(folder, config)["n_vocab"]
    ends = {id for id in ends if 0 <= id < n_vocab}
    if len(ends) > 1:
        raise Unsupported(
            f"{path}: eos_token_id is {shown(end)}, but this program ends a text at a single "
            f"token: leave one id there"
        )
    return min(ends, default=None)
