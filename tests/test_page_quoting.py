"""The page shows a text as it was typed, and its command makes the same text again."""

from page_reader import text_of, write

import gpt2
from page.quoting import readable


def test_the_command_on_the_page_makes_the_text_on_the_page(tmp_path, capsys):
    page = write(tmp_path, "naïve 🤗")
    capsys.readouterr()
    gpt2.main("naïve 🤗", 4, "tiny", temperature=0.7, top_k=40, top_p=0.9, seed=1)
    assert text_of(page.root.find(".//h1/em")) == readable(capsys.readouterr().out[:-1])
    command = text_of(page.all("pre", "command")[0])
    assert command == (
        "python gpt2.py 'naïve 🤗' --n_tokens_to_generate 4 --model_size tiny --temperature 0.7"
        " --top_k 40 --top_p 0.9 --seed 1"
    )
