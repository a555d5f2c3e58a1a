"""Who may connect, what for, and how that is proved: tokens, rules, certificates, and their reload."""
