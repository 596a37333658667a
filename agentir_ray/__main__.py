"""`python -m agentir_ray` is the `agentir` command, for when its script is not on the path."""

from agentir_ray.cli import main

if __name__ == "__main__":
    main()
