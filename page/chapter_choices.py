"""Chapter: why each new token was chosen."""

import numpy as np

import gpt2
from page.markup import joined, pair, percent, prose, short, table, tag


def chapter(run):
    words = prose(
        "The logits give every token of the vocabulary a probability, here those of the ten "
        "likeliest. Each option changes them: temperature below 1 favours the likely, top_k and "
        "top_p take tokens out (–), and what is left adds up to 1 again. Then a random number, "
        "the noise, is added to each tempered logit left, and the token with the largest sum is "
        "drawn. The noise is of the kind (Gumbel’s) that draws each token with just its "
        "probability."
    )
    steps = [choice(run, step) for step in range(len(run.new_ids))]
    return joined([pair([words]), *steps])


def choice(run, step):
    """One drawing: the likeliest tokens, what each option made of them, and which was drawn."""
    sample = run.find("sample", step)
    inner = {call.function: call for call in reversed(run.calls) if call.caller is sample}
    logits = tempered = kept = sample.first_argument.value[0]
    drawn, best = run.new_ids[step], int(logits.argmax())
    columns = {"probability": gpt2.softmax(logits)}
    options = {"scale_by_temperature": "temperature", "keep_top_k": "top_k", "keep_top_p": "top_p"}
    for function, option in options.items():
        if function in inner:
            kept = inner[function].returned.value[0]
            columns[f"{option} {run.options[option]}"] = gpt2.softmax(kept)
    if inner:
        tempered = inner["scale_by_temperature"].returned.value[0]
        noise = sample.summaries("noise")[-1].value[0]

    longest = max(probs.max() for probs in columns.values())
    likeliest = list(logits.argsort(kind="stable")[::-1][:10])
    rows = []
    for id in likeliest + [drawn] * (drawn not in likeliest):
        cells = [str(id), short(logits[id])]
        cells += [bar(probs[id], longest) for probs in columns.values()]
        if inner:
            is_left = not np.isneginf(kept[id])
            total = short(kept[id] + noise[id], 3) if is_left else "–"
            cells += [short(tempered[id], 3), short(noise[id], 3), total]
        mark = tag("strong", " drawn") if id == drawn else ""
        rows.append([joined([run.token(id), mark]), *cells])
    head = ["token", "id", "logit", *columns, *(["tempered", "noise", "sum"] if inner else [])]
    title = joined([f"Token {step + 1}: ", run.token(drawn)])
    words = reason(run, step, best, kept, list(columns.values()))
    return pair([tag("h3", title), words], table(f"Token {step + 1}", head, rows, "choice"))


def reason(run, step, best, kept, columns):
    """Why the token was picked, in a few sentences."""
    before = run.label_all((run.ids + run.new_ids)[: len(run.ids) + step])
    before = before if len(before) <= 24 else "…" + before[-24:]
    drawn = run.new_ids[step]
    words = ["After ", tag("bdi", before, class_="token"), " the likeliest is ",
             run.token(best), f" with {percent(columns[0][best])}. "]
    if len(columns) == 1:
        return prose(*words, "Temperature 0 takes it, and leaves nothing to chance.")
    n_left = int(np.isfinite(kept).sum())
    words.append(f"Of {kept.size:,} tokens {n_left:,} may still be picked. ")
    share = columns[-1]
    if drawn == best:
        words.append(f"Its share is {percent(share[best])} by now, and its sum the largest.")
    else:
        rank = 1 + int((kept > kept[drawn]).sum())
        words += ["The largest sum is that of ", run.token(drawn), f", number {rank} of these: its "
                  f"share is {percent(share[drawn])}, that of the likeliest "
                  f"{percent(share[best])}, but its noise made up for that."]
    return prose(*words)


def bar(share, longest):
    """A table cell with a probability as number and as length."""
    if share == 0:
        return tag("td", "–")
    return tag("td", percent(share), class_="bar", style=f"--share:{100 * share / longest:.0f}%")
