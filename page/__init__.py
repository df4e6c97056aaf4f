"""The parts of the web page that walkthrough.py writes; walkthrough.py puts them in order."""
