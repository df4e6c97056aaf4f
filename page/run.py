"""One run of gpt2.main under the tracer, and how the page finds a value in it."""

import contextlib
import dataclasses
import io
from unittest import mock

import numpy as np

import gpt2
from page.markup import Markup, label, tag
from page.tracer import trace
from page.values import describe


@dataclasses.dataclass
class Seen:
    """What the page keeps of a value that a line made."""

    shown: Markup  # the HTML beside the line; "" where the page does not show the value
    shape: "tuple | None"  # None for a value that is not an array
    value: object  # a copy of the value; None where no chapter needs it


# The functions whose arrays the chapters look at.
KEPT = {"generate", "sample", "scale_by_temperature", "keep_top_k", "keep_top_p"}
KEPT |= {"block", "attention", "mlp", "softmax"}


def layer_of(call):
    """The layer, counted from 0, in which a call was made; None for a call outside `block`."""
    while call and call.function != "block":
        call = call.caller
    return call.nth if call else None


def step_of(call):
    """The step in which a call was made: 0 for the first new token. None outside `generate`."""
    while call and not (call.caller and call.caller.function == "generate"):
        call = call.caller
    return call.nth if call else None


class Run:
    """One traced run of gpt2.main, and the model that it ran."""

    def __init__(self, options, encoder, hparams, params, layers):
        """options: for gpt2.main. layers: which to show in full, a list of int from 0."""
        self.options, self.encoder, self.hparams, self.params = options, encoder, hparams, params
        self.layers, self.first = layers, {}
        self.path = gpt2.main.__code__.co_filename
        printed, notes = io.StringIO(), io.StringIO()  # walkthrough.py has said these notes already
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(notes):
            with marked_memory():
                self.calls = trace(lambda: gpt2.main(**options), self.path, self.summarize)
        self.text = printed.getvalue().removesuffix("\n")

        generate = self.find("generate")
        self.ids = generate.first_argument.value  # the prompt
        self.new_ids = [int(seen.value[0]) for seen in generate.summaries("yield")]
        # The model has not read the last token. Of a text that outgrows the window, only the tokens
        # of the first window are shown.
        self.ids_read = (self.ids + self.new_ids)[:-1][: hparams["n_ctx"]]
        S = len(self.ids) + 1  # tokens that the second step looks at, if it goes on from the cache
        self.is_cached = len(self.new_ids) > 1 and self.attention(1, 0).shape[-1] == S
        # What happened to a token that was chosen: temperature 0 leaves nothing to chance.
        self.chosen = "drawn" if float(options["temperature"]) > 0 else "taken"

    def summarize(self, call, name, value):
        """What to keep of a value: the HTML only where the page shows it."""
        step, layer = step_of(call), layer_of(call)
        first = self.first.setdefault((call.function, step, layer), call)  # the listing shows it
        is_shown = first is call and (step or 0) < 2 and (layer is None or layer in self.layers)
        shown = describe(name, value) if is_shown else Markup()
        is_kept = call.function in KEPT and isinstance(value, (np.ndarray, list))
        shape = value.shape if isinstance(value, np.ndarray) else None
        return Seen(shown, shape, value.copy() if is_kept else None)

    def find(self, function, step=None, layer=None, caller=None):
        """The first call of a function in a step and a layer; None if there is none."""
        for call in self.calls:
            if (function, step, layer) == (call.function, step_of(call), layer_of(call)):
                if caller in (None, call.caller.function if call.caller else None):
                    return call
        return None

    def result(self, *where, **more):
        """What a call returned; the arguments are those of `find`."""
        return self.find(*where, **more).returned.value

    def attention(self, step, layer):
        """The attention weights of a layer in a step: [H, T, S]."""
        return self.result("softmax", step, layer, caller="attention")[0]

    def stream(self, step):
        """x before the first layer and after each: a list of L + 1 arrays [T, C]."""
        first = self.find("block", step, 0).first_argument.value[0]
        return [first] + [self.result("block", step, i)[0] for i in range(self.hparams["n_layer"])]

    def label(self, id):
        return label(self.encoder.tokens[id])

    def label_all(self, ids):
        return label(self.encoder.decode_bytes(ids))

    def token(self, id):
        """A token as it is shown within a sentence."""
        return tag("bdi", self.label(id), class_="token")


@contextlib.contextmanager
def marked_memory():
    """Makes np.empty fill floats with nan, so that the page can show what was never written."""

    def empty(*args, **kwargs):
        array = true_empty(*args, **kwargs)
        if array.dtype.kind == "f":
            array[...] = np.nan
        return array

    true_empty = np.empty
    with mock.patch.object(np, "empty", empty):
        yield
