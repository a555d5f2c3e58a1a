"""`mercast secrets`: what brokers in Kubernetes prove themselves by."""

import asyncio
import sys
from pathlib import Path

from mercast.membership.kubernetes_api import ApiError, connected
from mercast.security.errors import SecurityError
from mercast.security.kubernetes_secrets import Secrets
from mercast.security.secret_plan import Plan, read_plan


def secrets(*, plan: Path) -> None:
    """Make Secrets in Kubernetes, such as: mercast secrets --plan plan.yaml

    A CA, certificates signed by it, and tokens. What is not there is made; a CA and tokens that are there are kept, and
    certificates too, unless their names are others than in the plan or less than a third of their life is left. The
    chart runs it as a job before each upgrade.

    Parameters
    ----------
    plan
        A YAML file that says which (docs/kubernetes.md).
    """
    try:
        asyncio.run(_carry_out(read_plan(plan)))
    except (SecurityError, ApiError) as error:
        sys.exit(f"mercast secrets: {error}")


async def _carry_out(plan: Plan) -> None:
    async with connected() as api:
        async for done in Secrets(api, plan).carry_out():
            sys.stdout.write(f"{done}\n")
            sys.stdout.flush()
