"""The audit: a batch job over the taps that finds out anew who should have got what, and compares.

    messages -> control rows -> lives of subscriptions and advertisements, questions (their distinct filters)
             -> event rows   -> events with the questions that they answer -> what was due, beside what was delivered

It shares no code with the matcher: the WHERE text is read by a parser of its own (where.py), written from
docs/filters.md, and becomes expressions of Spark (translate.py), which decides.
"""
