"""Pictures of an analysis, drawn with matplotlib: time against PSN, goodput over time.

Only this package knows matplotlib, and loads it when the first picture is drawn.
"""
