"""The live web page: what brokers do now, from their taps or admin ports, and what Spark makes of it.

Pure, with time as an argument: brokers.py (who is there, and how), load.py (rates over time), figures.py (windows of
the metrics topic), events.py (the path of an event), layout.py (where brokers are drawn), missing.py, view.py (all of
it, as the page gets it).
Around them: kafka_source.py, admin_source.py and older.py read, server.py serves.
"""
