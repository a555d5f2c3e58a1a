"""Match at every hop, forward toward matching subscriptions."""
