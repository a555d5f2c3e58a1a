"""Speed, always beside a yardstick in the same run: these figures mean little on their own."""
